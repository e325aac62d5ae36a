"""Programs that the playground opens with, each for one question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A program whose findings answer a question; `name`: in the address."""

    name: str
    question: str
    source: str


EXAMPLES: Final = (
    Example(
        name="none",
        question="Why is .grad None?",
        source="""\
import torch

w = torch.ones(3, requires_grad=True) * 0.1
x = torch.tensor([1.0, 2.0, 3.0])
loss = (w * x).sum()
loss.backward()
print(w.grad)
""",
    ),
    Example(
        name="memory",
        question="Why does memory grow?",
        source="""\
import torch
from torch import nn

model = nn.Linear(64, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
total = 0.0
for step in range(20):
    x = torch.randn(32, 64)
    optimizer.zero_grad()
    loss = (model(x) ** 2).mean()
    loss.backward()
    optimizer.step()
    total += loss
print(total / 20)
""",
    ),
    Example(
        name="nan",
        question="Where is the first NaN?",
        source="""\
import torch

w = torch.tensor([2.0, 0.0], requires_grad=True)
x = torch.tensor([1.0, 3.0])
distance = torch.sqrt(w * x)
loss = distance.sum()
loss.backward()
print(w.grad)
optimizer = torch.optim.SGD([w], lr=0.1)
optimizer.step()
print(torch.sqrt(w * x).sum())
""",
    ),
    Example(
        name="train",
        question="Why does nothing train?",
        source="""\
import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(64, 8), torch.randn(64, 1)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
for step in range(5):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    print(step, loss.item())
""",
    ),
)
"""The first one stands on the start page."""
