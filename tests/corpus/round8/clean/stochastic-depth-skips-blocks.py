import torch
import torch.nn as nn


class Skippable(nn.Module):
    def __init__(self, channels, survival):
        super().__init__()
        self.survival = survival
        self.body = nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1), nn.GroupNorm(2, channels), nn.ReLU(inplace=True),
                                  nn.Conv2d(channels, channels, 3, padding=1))

    def forward(self, x):
        if not self.training:
            return x + self.survival * self.body(x)
        if torch.rand(()) > self.survival:
            return x
        return x + self.body(x)


torch.manual_seed(13)
net = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1),
    *(Skippable(8, 1 - 0.15 * i) for i in range(4)),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 2),
)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
images = torch.randn(60, 1, 8, 8)
labels = (images[:, 0].var((1, 2)) > 1).long()
for epoch in range(4):
    net.train()
    for rows in torch.randperm(60).split(15):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(images[rows]), labels[rows])
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.inference_mode():
        print(epoch, loss.item(), (net(images).argmax(1) == labels).float().mean().item())
