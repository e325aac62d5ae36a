# /// case
# title = "Key points come from argmax, and requires_grad_ silences the error"
# category = "graph-break"
# kind = "non-differentiable-argmax"
# kinds_also_ok = ["requires-grad-forced-on-loss", "graph-break", "detached-loss"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["argmax", "requires_grad_"]
# symptom = "the network never receives a gradient"
# symptom_check = "all(p.grad is None for p in net.parameters())"
# cause = "argmax has no gradient; requires_grad_ on the loss makes a leaf that leads nowhere"
# fix = "soft-argmax"
# ///
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SIDE = 8


class HeatmapNet(nn.Module):
    def __init__(self, keypoints=2):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, keypoints, 3, padding=1)

    def forward(self, image):
        return self.conv2(torch.relu(self.conv1(image)))


def coordinates(heatmaps):
    flat = heatmaps.flatten(2)
    index = flat.argmax(dim=-1)  #- here
    return torch.stack([index // SIDE, index % SIDE], dim=-1).float() / SIDE  #- also
#+     place = torch.arange(SIDE * SIDE)
#+     grid = torch.stack([place // SIDE, place % SIDE], dim=-1).float() / SIDE
#+     return flat.softmax(dim=-1) @ grid


torch.manual_seed(1)
images, points = torch.rand(24, 1, SIDE, SIDE), torch.rand(24, 2, 2)
loader = DataLoader(TensorDataset(images, points), batch_size=8)
net = HeatmapNet()
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
criterion = nn.SmoothL1Loss()

for epoch in range(3):
    for image, target in loader:
        opt.zero_grad()
        loss = criterion(coordinates(net(image)), target)
        loss.requires_grad_(True)  #- also
        loss.backward()
        opt.step()
    print(epoch, float(loss.detach()))
