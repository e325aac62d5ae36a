# /// case
# category = "numeric"
# kind = "vanishing-gradient"
# severity = "warning"
# names = ["layers", "Sigmoid"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
layers = [nn.Linear(10, 20)]
for _ in range(12):
    layers += [nn.Sigmoid(), nn.Linear(20, 20)]  #- here
deep = nn.Sequential(*layers, nn.Sigmoid(), nn.Linear(20, 1))  #- also
#+     layers += [nn.ReLU(), nn.LayerNorm(20), nn.Linear(20, 20)]
#+ deep = nn.Sequential(*layers, nn.ReLU(), nn.Linear(20, 1))
opt = torch.optim.SGD(deep.parameters(), lr=0.1)
for x in torch.randn(5, 32, 10):
    loss = (deep(x).squeeze(1) - x[:, 0]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(deep[0].weight.grad.norm().item(), deep[-1].weight.grad.norm().item())
