"""BP203 grad-read-when-none."""

_LOOP = """
import torch
from torch import nn
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
kept = []
for step in range({turns}):
    {body}
    model(torch.randn(4, 3)).square().mean().backward()
    optimizer.step()
"""


def _loop(*lines: str, turns: int = 3) -> str:
    return _LOOP.format(body="\n    ".join(lines), turns=turns)


PROGRAMS = {
    "the norm is taken behind the clear": _loop("optimizer.zero_grad()", "norm = model.weight.grad.norm()  # <- BP203"),
    "in a function over all parameters": """
import torch
from torch import nn

def norm_of(module):
    return sum(float(p.grad.norm()) for p in module.parameters())  # <- BP203

model = nn.Linear(3, 1)
for _ in range(2):
    norm = norm_of(model)
    model(torch.randn(4, 3)).sum().backward()
""",
    "taken before the call, and used behind it": """
import torch
weight = torch.ones(3, requires_grad=True)
slope = weight.grad  # <- BP203
weight.square().sum().backward()
with torch.no_grad():
    weight -= 0.1 * slope
""",
    "kept behind the clear": _loop("optimizer.zero_grad()", "kept.append(model.bias.grad)  # <- BP203"),
    "kept once": _loop("optimizer.zero_grad()", "kept.append(model.bias.grad)", turns=1),
    "printed": _loop("optimizer.zero_grad()", "print(model.bias.grad)"),
    "in a text": _loop("optimizer.zero_grad()", 'kept.append(f"{model.bias.grad}")'),
    "tested": _loop("optimizer.zero_grad()", "kept.append(model.bias.grad is None)"),
    "cleared to zeros": _loop("optimizer.zero_grad(set_to_none=False)", "kept.append(model.bias.grad)"),
    "another exception ends the program": _loop(
        "optimizer.zero_grad()", "kept.append((model.bias.grad, 1 / (1 - step)))  # <- BP203", turns=2
    ),
    "another None is at fault": """
import torch
weight = torch.ones(3, requires_grad=True)
slope, other = weight.grad, None
saved = weight.grad
other.shape
""",
    "no backward call ever fills it": """
import torch
weight = torch.ones(3, requires_grad=True)
kept = []
for _ in range(3):
    kept.append(weight.grad)
    (slope,) = torch.autograd.grad(weight.square().sum(), weight)
""",
    "it requires no grad": """
import torch
weight, fixed = torch.ones(3, requires_grad=True), torch.ones(3)
kept = []
for _ in range(3):
    kept.append(fixed.grad is None and fixed.sum())
    (weight * fixed).sum().backward()
""",
}
