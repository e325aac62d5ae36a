"""BP401 inplace-on-saved, where several statements write."""

PROGRAMS = {
    "two writes on saved": """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(4, 4)
for x in torch.randn(2, 8, 4):
    y = torch.sigmoid(net(x))
    y.mul_(2)  # <- BP401
    y.sub_(1)
    y.pow(2).mean().backward()
""",
}
