# /// case
# title = "model.half() and a tiny loss: gradients underflow"
# category = "cause"
# kind = "half-gradient-underflow"
# kinds_also_ok = ["gradient-underflow"]
# severity = "warning"
# names = ["half", "net"]
# symptom = "every gradient is exactly zero though the loss is not"
# symptom_check = "all(float(p.grad.abs().max()) == 0 for p in net.parameters())"
# cause = "half precision parameters with losses of 1e-8 per sample"
# fix = "train in float32"
# evidence = [
#     { url = "https://github.com/pytorch/examples/issues/1196", title = "add scaler.unscale_(optimizer) before clip_grad_norm_" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(22)
net = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))
net = net.half()  #- here
dtype = net[0].weight.dtype
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def batch(n=32):
    x = torch.randn(n, 16)
    return x.to(dtype), (x.mean(1, keepdim=True) * 1e-3).to(dtype)


for step in range(10):
    x, y = batch()
    out = net(x) * 1e-3
    loss = ((out - y) ** 2).mean() * 1e-3
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
print(loss.item())
