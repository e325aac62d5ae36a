"""BP765 weight-decay-inverted."""

MODEL = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 16), nn.Linear(16, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))

model = nn.Sequential(Block(), nn.Linear(8, 1))
"""
TRAIN = """
for x in torch.randn(3, 6, 8):
    optimizer.zero_grad()
    (model(x) - 1).pow(2).mean().backward()
    optimizer.step()
"""

PROGRAMS = {
    "vectors decay and matrices do not": MODEL
    + """
decay, plain = [], []
for parameter in model.parameters():
    (plain if parameter.dim() > 1 else decay).append(parameter)
optimizer = torch.optim.AdamW(
    [
        {"params": decay, "weight_decay": 0.05},  # <- BP765
        {"params": plain, "weight_decay": 0.0},
    ],
    lr=1e-3,
)
"""
    + TRAIN,
    "the groups are named and swapped": MODEL
    + """
matrices = [p for p in model.parameters() if p.ndim >= 2]
vectors = [p for p in model.parameters() if p.ndim < 2]
groups = [dict(params=matrices, weight_decay=0.0), dict(params=vectors)]  # <- BP765
optimizer = torch.optim.AdamW(groups, lr=1e-3, weight_decay=0.1)
"""
    + TRAIN,
    "matrices decay and vectors do not": MODEL
    + """
matrices = [p for p in model.parameters() if p.ndim >= 2]
vectors = [p for p in model.parameters() if p.ndim < 2]
optimizer = torch.optim.AdamW(
    [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}], lr=1e-3
)
"""
    + TRAIN,
    "a head without decay, a body with": MODEL
    + """
optimizer = torch.optim.SGD(
    [
        {"params": model[0].parameters(), "weight_decay": 0.1},
        {"params": model[1].parameters(), "weight_decay": 0.0},
    ],
    lr=1e-3,
)
"""
    + TRAIN,
}
