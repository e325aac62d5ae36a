import torch
from torch import nn


class DarkBlock(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.conv1 = nn.Conv2d(ch, ch, 1)
        self.conv2 = nn.Conv2d(ch, ch, 3, padding=1)

    def forward(self, x):
        residual = x
        out = torch.relu(self.conv1(x))
        out = torch.relu(self.conv2(out))
        out += residual
        return out


torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(3, 6, 3), DarkBlock(6), DarkBlock(6), nn.AdaptiveAvgPool2d(1), nn.Flatten())
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(2):
    opt.zero_grad()
    loss = net(torch.randn(2, 3, 10, 10)).pow(2).mean()
    loss.backward()
    opt.step()
