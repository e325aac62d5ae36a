# /// case
# title = "The Dice term is computed on the thresholded mask, which has no gradient"
# category = "graph-break"
# kind = "non-differentiable-threshold"
# kinds_also_ok = ["hard-prediction-in-loss", "graph-cut-by-comparison", "loss-term-without-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["pred", "dice", "logits"]
# symptom = "the Dice term is reported but never optimised: only the cross entropy trains the network"
# symptom_check = "not criterion.parts['dice'].requires_grad"
# cause = "A comparison returns booleans without a graph, so the Dice part is a constant for autograd."
# fix = "compute Dice on the probabilities"
# ///
import torch
import torch.nn.functional as F
from torch import nn


def phantoms(n, size=20):
    axis = torch.arange(size)
    grid = torch.stack(torch.meshgrid(axis, axis, indexing="ij")).float()
    centre = torch.randint(5, size - 5, (n, 2)).float()
    radius = 2 + 2 * torch.rand(n, 1, 1)
    dist = (grid[None] - centre[:, :, None, None]).square().sum(1).sqrt()
    mask = (dist < radius).float().unsqueeze(1)
    return 1.2 * mask + 0.6 * torch.randn_like(mask), mask


def block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.GroupNorm(4, cout), nn.ReLU())


class TinyUNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.down = block(1, width)
        self.mid = block(width, 2 * width)
        self.up = block(3 * width, width)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        fine = self.down(x)
        coarse = self.mid(F.max_pool2d(fine, 2))
        return self.out(self.up(torch.cat([fine, F.interpolate(coarse, scale_factor=2)], 1)))


class DiceBCELoss(nn.Module):
    def __init__(self, bce_weight=0.3, smooth=1.0):
        super().__init__()
        self.bce_weight, self.smooth = bce_weight, smooth
        self.parts = {}

    def forward(self, logits, target):
        pred = (torch.sigmoid(logits) > 0.5).float()  #- here
#+         pred = torch.sigmoid(logits)
        inter = (pred * target).sum((1, 2, 3))  #! also
        dice = 1 - (2 * inter + self.smooth) / (pred.sum((1, 2, 3)) + target.sum((1, 2, 3)) + self.smooth)  #! also
        bce = F.binary_cross_entropy_with_logits(logits, target)
        self.parts = {"dice": dice.mean(), "bce": bce}
        return dice.mean() + self.bce_weight * bce


torch.manual_seed(3)
scans, masks = phantoms(64)
net = TinyUNet()
criterion = DiceBCELoss()
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-4)
losses = []
for epoch in range(5):
    for rows in torch.randperm(len(scans)).split(16):
        optimizer.zero_grad()
        loss = criterion(net(scans[rows]), masks[rows])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(epoch, {name: round(part.item(), 3) for name, part in criterion.parts.items()})
