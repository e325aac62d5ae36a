import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


def double(i, o):
    return nn.Sequential(
        nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
        nn.Conv2d(o, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.bottom, self.side = double(1, 6), double(6, 12), double(18, 6)
        self.head = nn.Conv2d(6, 1, 1)

    def forward(self, x):
        a = self.down(x)
        b = self.bottom(F.max_pool2d(a, 2))
        up = F.interpolate(b, scale_factor=2, mode="bilinear", align_corners=False)
        return self.head(self.side(torch.cat([a, up], 1)))


def dice(logits, mask):
    p = logits.sigmoid().flatten(1)
    m = mask.flatten(1)
    return 1 - ((2 * (p * m).sum(1) + 1) / (p.sum(1) + m.sum(1) + 1)).mean()


net = UNet()
opt = torch.optim.NAdam(net.parameters(), lr=1e-2)
best = None
for epoch in range(4):
    net.train()
    for _ in range(2):
        x = torch.rand(4, 1, 16, 16)
        mask = (x > 0.6).float()
        logits = net(x)
        loss = dice(logits, mask) + F.binary_cross_entropy_with_logits(logits, mask)
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        x = torch.rand(4, 1, 16, 16)
        iou = ((net(x) > 0) & (x > 0.6)).sum() / ((net(x) > 0) | (x > 0.6)).sum().clamp(min=1)
    best = iou if best is None or iou > best else best
    print(epoch, loss.item(), best.item())
