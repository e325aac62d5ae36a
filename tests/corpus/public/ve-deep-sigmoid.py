# /// case
# title = "Twelve sigmoid layers: gradients vanish towards the input"
# category = "vanishing-exploding"
# kind = "vanishing-gradient"
# severity = "warning"
# names = ["net"]
# difficulty = "medium"
# symptom = "silent: first layer's gradient is more than 1e5 times smaller than the last one's"
# symptom_check = "ratio < 1e-5"
# cause = "sigmoid' <= 0.25, multiplied over the layers"
# fix = "ReLU/GELU with He init, normalisation, residuals"
# evidence = [
#     { url = "https://github.com/s-4-m-a-n/365-days-of-ML-challange" },
#     { url = "https://github.com/microsoft/LoRA/issues/167" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(0)
layers = []
for _ in range(12):
    layers += [nn.Linear(16, 16), nn.Sigmoid()]  #- here
#+     layers += [nn.Linear(16, 16), nn.LayerNorm(16), nn.GELU()]
net = nn.Sequential(*layers, nn.Linear(16, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
x = torch.randn(64, 16)
y = x.sum(1, keepdim=True)
for _ in range(10):
    opt.zero_grad()
    loss = nn.functional.mse_loss(net(x), y)
    loss.backward()
    opt.step()
linears = [m for m in net if isinstance(m, nn.Linear)]
ratio = (linears[0].weight.grad.norm() / linears[-1].weight.grad.norm()).item()
print(ratio)
