"""BP802 double-sigmoid."""

PROGRAMS = {
    "the probabilities train by another term, too": """
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)


def objective(x, mask):
    probs = net(x).sigmoid()
    overlap = (probs * mask).sum() / (probs.sum() + mask.sum())
    bce = F.binary_cross_entropy_with_logits(probs, mask)  # <- BP802
    return bce + 1 - 2 * overlap


for _ in range(3):
    loss = objective(torch.randn(7, 6), (torch.rand(7, 4) > 0.5).float())
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "the probabilities are shown, too": """
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
net = nn.Linear(6, 4)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(3):
    x, y = torch.randn(7, 6), (torch.rand(7, 4) > 0.5).float()
    probs = torch.sigmoid(net(x))  # <- BP802
    right = ((probs > 0.5) == y.bool()).float().mean().item()
    sure = probs.mean().item()
    loss = F.binary_cross_entropy_with_logits(probs, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(right, sure)
""",
    "a sigmoid that a builder adds": """
from collections import OrderedDict

import torch
from torch import nn


class Builder:
    def __init__(self):
        self.layers = OrderedDict()

    def linear(self, a, b):
        self.layers[f"linear{len(self.layers)}"] = nn.Linear(a, b)
        return self

    def squash(self):
        self.layers[f"squash{len(self.layers)}"] = nn.Sigmoid()  # <- BP802
        return self

    def build(self):
        return nn.Sequential(self.layers)


torch.manual_seed(0)
net = Builder().linear(4, 6).linear(6, 1).squash().build()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
criterion = nn.BCEWithLogitsLoss()
for _ in range(3):
    loss = criterion(net(torch.randn(8, 4)), torch.randint(0, 2, (8, 1)).float())
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}
