import torch
from torch import nn

torch.manual_seed(0)
conv = nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.ReLU())
head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 3))
image = torch.rand(1, 1, 10, 10)
maps = conv(image)
maps.retain_grad()
score = head(maps)[0].max()
score.backward()
weights = maps.grad.mean((2, 3), keepdim=True)
cam = (weights * maps.detach()).sum(1).relu()
print(cam.shape, cam.max().item())
