import torch
from torch import nn

torch.manual_seed(0)
backbone = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
backbone.requires_grad_(False)
backbone.eval()
probe = nn.Linear(4, 3)
opt = torch.optim.LBFGS(probe.parameters(), lr=0.5, max_iter=5)
x, y = torch.rand(30, 1, 8, 8), torch.randint(0, 3, (30,))
with torch.no_grad():
    features = backbone(x)


def closure():
    opt.zero_grad()
    loss = nn.functional.cross_entropy(probe(features), y)
    loss.backward()
    return loss


for _ in range(3):
    print(opt.step(closure).item())
