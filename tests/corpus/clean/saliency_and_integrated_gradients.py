import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 12), nn.Softplus(), nn.Linear(12, 3)).eval()
for p in net.parameters():
    p.requires_grad_(False)
x = torch.randn(5)
total = torch.zeros(5)
for alpha in torch.linspace(0.1, 1.0, 6):
    point = (alpha * x).detach().requires_grad_()
    net(point)[1].backward()
    total += point.grad
attribution = total / 6 * x
leaf = x.clone().requires_grad_()
net(leaf).max().backward()
print(attribution, leaf.grad.abs())
