"""BP722 clip-without-gradient."""

HEAD = """
import torch
from torch import nn
model, other = nn.Linear(3, 1), nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""

PROGRAMS = {
    "the wrong model": HEAD
    + """
for x in torch.randn(3, 8, 3):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    torch.nn.utils.clip_grad_norm_(other.parameters(), 0.5)  # <- BP722
    optimizer.step()
""",
    "gradients were set to zero": HEAD
    + """
for x in torch.randn(3, 8, 3):
    model(x).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # <- BP722
""",
    "once is no pattern": HEAD
    + """
nn.utils.clip_grad_norm_(model.parameters(), 1.0)
for x in torch.randn(3, 8, 3):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
""",
}
