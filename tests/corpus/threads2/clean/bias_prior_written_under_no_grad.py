import math

import torch
import torch.nn as nn


class Head(nn.Module):
    def __init__(self, anchors=2, classes=3):
        super().__init__()
        self.conv = nn.Conv2d(4, anchors * (classes + 1), 1)
        with torch.no_grad():
            bias = self.conv.bias.view(anchors, -1)
            bias[:, 0] += math.log(0.01 / 0.99)
            bias[:, 1:].fill_(math.log(0.6 / classes))

    def forward(self, x):
        return self.conv(x)


torch.manual_seed(32)
net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.SiLU(), Head())
opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
for _ in range(4):
    out = net(torch.rand(2, 3, 6, 6))
    loss = nn.functional.binary_cross_entropy_with_logits(out, (torch.rand_like(out) < 0.1).float())
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
