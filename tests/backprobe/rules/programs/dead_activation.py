"""BP221 dead-activation."""

_LOOP = """
import torch
from torch import nn

first, second = nn.Linear(4, 6), nn.Linear(6, 2)
nn.init.constant_(first.bias, {bias})
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.01)
for turn in range({turns}):
    rows = torch.randn(8, 4)
    {body}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def _loop(body: str, bias: float = -40.0, turns: int = 4) -> str:
    return _LOOP.format(body=body, bias=bias, turns=turns)


PROGRAMS = {
    "inside an expression": _loop("loss = second(first(rows).relu()).square().mean()  # <- BP221"),
    "above the upper bound": _loop(
        "kept = first(rows).clamp(-1, 1)  # <- BP221\n    loss = second(kept).square().mean()", bias=40.0
    ),
    "the second of two in one statement": _loop(
        "loss = second(first(rows.requires_grad_().relu()).relu()).square().mean()  # <- BP221"
    ),
    "two turns only": _loop("loss = second(first(rows).relu()).square().mean()", turns=2),
    "alive in one turn": _loop("loss = second((first(rows) + (80 if turn == 1 else 0)).relu()).square().mean()"),
    "a path round it": _loop("h = first(rows)\n    loss = second(h.relu() + 0.1 * h).square().mean()"),
    "a leaky one": _loop("loss = second(nn.functional.leaky_relu(first(rows))).square().mean()"),
    "no gradient comes to it": _loop("loss = (second(first(rows).relu()) * 0).sum()"),
    "nothing behind it is trained": """
import torch
from torch import nn
layer = nn.Linear(4, 1)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for _ in range(4):
    rows = (torch.rand(8, 4, requires_grad=True) - 5).relu()
    optimizer.zero_grad()
    (layer(rows) - 1).square().mean().backward()
    optimizer.step()
""",
}
