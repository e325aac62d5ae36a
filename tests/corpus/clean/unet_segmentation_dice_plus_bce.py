import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.d1 = nn.Conv2d(1, 8, 3, padding=1)
        self.d2 = nn.Conv2d(8, 16, 3, padding=1)
        self.up = nn.ConvTranspose2d(16, 8, 2, 2)
        self.u1 = nn.Conv2d(16, 8, 3, padding=1)
        self.out = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        a = F.relu(self.d1(x))
        b = F.relu(self.d2(F.max_pool2d(a, 2)))
        return self.out(F.relu(self.u1(torch.cat([self.up(b), a], 1))))


def dice_loss(logits, target, eps=1.0):
    p = logits.sigmoid().flatten(1)
    t = target.flatten(1)
    return (1 - (2 * (p * t).sum(1) + eps) / (p.sum(1) + t.sum(1) + eps)).mean()


def blobs(n):
    yy, xx = torch.meshgrid(torch.arange(8.0), torch.arange(8.0), indexing="ij")
    c = torch.rand(n, 2) * 8
    m = (((yy - c[:, :1, None]) ** 2 + (xx - c[:, 1:, None]) ** 2) < 6).float().unsqueeze(1)
    return m + 0.3 * torch.randn_like(m), m


net = UNet()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
sched = torch.optim.lr_scheduler.PolynomialLR(opt, total_iters=10, power=0.9)
for it in range(10):
    x, m = blobs(6)
    logits = net(x)
    loss = F.binary_cross_entropy_with_logits(logits, m) + dice_loss(logits, m)
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
net.eval()
with torch.no_grad():
    x, m = blobs(8)
    pred = (net(x).sigmoid() > 0.5).float()
    iou = (pred * m).sum() / ((pred + m) > 0).sum()
print(loss.item(), iou.item())
