"""BP111 parameter-lost-on-move."""

_NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        {made}
        self.bias = nn.Parameter(torch.zeros(3))

    def forward(self, rows):
        {forward}

net = Net()
optimizer = torch.optim.SGD({held}, lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    net(torch.ones(2, 3)).sum().backward(retain_graph=True)
    optimizer.step()
"""


def _net(made: str, forward: str = "return rows * self.w + self.bias", held: str = "net.parameters()") -> str:
    return _NET.format(made=made, forward=forward, held=held)


PROGRAMS = {
    "scaled behind": _net("self.w = nn.Parameter(torch.ones(3) + 1) * 0.1  # <- BP111"),
    "a view of it": _net("self.w = nn.Parameter(torch.ones(1, 3)).view(3)  # <- BP111"),
    "by keyword: no edit is offered": _net("self.w = nn.Parameter(data=torch.ones(3)) * 0.1  # <- BP111"),
    "of a sum of two": _net("self.w = nn.Parameter(torch.ones(3)) + nn.Parameter(torch.zeros(3))"),
    "the Parameter is kept under another name": _net("self.raw = nn.Parameter(torch.ones(3)); self.w = self.raw * 0.1"),
    "a buffer of the module": _net("self.w = torch.ones(3)"),
    "a tensor that is no Parameter": _net("self.w = torch.ones(3, requires_grad=True) * 2"),
    "an optimizer holds the Parameter": """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, groups):
        super().__init__()
        groups.append(nn.Parameter(torch.ones(3)))
        self.w = groups[0] * 0.1

    def forward(self, rows):
        return rows * self.w

groups = []
net = Net(groups)
optimizer = torch.optim.SGD(groups, lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    net(torch.ones(2, 3)).sum().backward(retain_graph=True)
    optimizer.step()
""",
    "an object that is no module": """
import torch
from torch import nn

class Table:
    def __init__(self):
        self.w = nn.Parameter(torch.ones(3)) * 0.1

table = Table()
(table.w * 2).sum().backward()
""",
}
