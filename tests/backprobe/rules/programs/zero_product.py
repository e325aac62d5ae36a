"""BP222 zero-product."""

_LOOP = """
import torch
from torch import nn

one = nn.Parameter(torch.{one}(4))  {mark}
two = nn.Parameter(torch.{two}(4))
optimizer = torch.optim.SGD([one, two], lr=0.1)
for _ in range({turns}):
    rows = torch.randn(8, 4)
    optimizer.zero_grad()
    loss = {loss}
    loss.backward()
    optimizer.step()
"""


def _loop(loss: str, one: str = "zeros", two: str = "zeros", turns: int = 3, *, found: bool = False) -> str:
    return _LOOP.format(one=one, two=two, loss=loss, turns=turns, mark="# <- BP222" if found else "")


_FILLED = """
import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
for layer in net:
    if isinstance(layer, nn.Linear):
        nn.init.zeros_(layer.bias)
        {init}
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    rows = torch.randn(16, 4)
    optimizer.zero_grad()
    loss = (net(rows) - rows.sum(1, keepdim=True)).square().mean()
    loss.backward()
    optimizer.step()
"""

PROGRAMS = {
    "element by element": _loop("(rows * one * two - rows).square().mean()", found=True),
    "one factor is not zero": _loop("(rows * one * two - rows).square().mean()", two="ones"),
    "a sum": _loop("(rows * one + rows * two - rows).square().mean()"),
    "once only": _loop("(rows * one * two - rows).square().mean()", turns=1),
    "one of them gets a gradient elsewhere": _loop(
        "(rows * one * two - rows).square().mean() + (two - 1).square().sum()"
    ),
    "the loss is cut off from both by a zero": _loop("((one + two) * 0 * rows).sum()", one="ones", two="ones"),
    "in a module": """
import torch
from torch import nn

class Adapter(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Parameter(torch.zeros(4, 2))  # <- BP222
        self.up = nn.Parameter(torch.zeros(2, 4))

    def forward(self, rows):
        return rows + rows @ self.down @ self.up

net = Adapter()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    net(torch.randn(8, 4)).square().mean().backward()
    optimizer.step()
""",
    "the zeros are in no product of the two": """
import torch
from torch import nn
one, two = nn.Parameter(torch.zeros(4)), nn.Parameter(torch.zeros(4))
scale = torch.zeros(4)
optimizer = torch.optim.SGD([one, two], lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    ((one + two) * scale).sum().backward()
    optimizer.step()
""",
    "layers whose weights are all filled with zeros": _FILLED.format(init="nn.init.zeros_(layer.weight)  # <- BP222"),
    "layers that are filled with a constant": _FILLED.format(init="nn.init.constant_(layer.weight, 0.1)  # <- BP224"),
    "the last layer starts at zero": _FILLED.format(init="layer.out_features == 1 and nn.init.zeros_(layer.weight)"),
}
