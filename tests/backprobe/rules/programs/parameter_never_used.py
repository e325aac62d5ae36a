"""BP201 parameter-never-used."""

_NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, dim=6):
        super().__init__()
        {made}
        self.head = nn.Linear(dim, 2)

    def forward(self, x):
        {forward}

net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(3):
    x = torch.randn(8, 6)
    optimizer.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
{more}
"""

_SPREAD = """
import tempfile
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 6)
        self.spare = nn.Linear(6, 2){mark}
        self.head = nn.Linear(6, 2)

    def forward(self, x):
        return self.head(self.body(x).relu())

options = {options}
place = f"file://{{tempfile.mktemp()}}"
torch.distributed.init_process_group("gloo", init_method=place, rank=0, world_size=1)
model = DistributedDataParallel(Net(), {given})
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn({steps}, 8, 6):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
torch.distributed.destroy_process_group()
"""


def _spread(given: str, *, options: str = "{}", mark: str = "", steps: int = 3) -> str:
    return _SPREAD.format(given=given, options=options, mark=mark, steps=steps)


def _net(made: str, forward: str, more: str = "") -> str:
    inside = "\n        "
    return _NET.format(made=made.replace("\n", inside), forward=forward.replace("\n", inside), more=more)


PROGRAMS = {
    "the wrapper is told to look for unused ones": _spread("find_unused_parameters=True"),
    "the wrapper is told so by a name": _spread("find_unused_parameters=bool(torch.ones(1))"),
    "the wrapper is told so by a dictionary": _spread("**options", options="{'find_unused_parameters': True}"),
    "the wrapper is told of a graph that stays": _spread("static_graph=True"),
    "the wrapper is told that all are used": _spread("find_unused_parameters=False", mark="  # <- BP201", steps=1),
    "frozen once it was trained": _net(
        "self.used = nn.Linear(dim, dim)\nself.spare = nn.Linear(dim, dim)  # <- BP201",
        "return self.head(self.used(x))",
        "net.requires_grad_(False)",
    ),
    "its twin is called in its place": _net(
        "self.one = nn.Linear(dim, dim)\nself.two = nn.Linear(dim, dim)",
        "x = x + self.one(x).relu()\nx = x + self.one(x).relu()  # <- BP201\nreturn self.head(x)",
    ),
    "a whole block": _net(
        "self.one = nn.Linear(dim, dim)\n"
        "self.side = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim))  # <- BP201",
        "return self.head(self.one(x))",
    ),
    "a block whose twin is called twice": _net(
        "self.one = nn.Sequential(nn.Linear(dim, dim), nn.Tanh())\n"
        "self.two = nn.Sequential(nn.Linear(dim, dim), nn.Tanh())",
        "x = self.one(x)\nx = self.one(x)  # <- BP201\nreturn self.head(x)",
    ),
    "one of another shape is called twice": _net(
        "self.one = nn.Linear(dim, dim)\nself.two = nn.Linear(dim, 3)  # <- BP201",
        "x = self.one(x)\nx = self.one(x)\nreturn self.head(x)",
    ),
    "one of another class is called twice": _net(
        "self.one = nn.Bilinear(dim, dim, dim)\nself.two = nn.Linear(dim, dim)  # <- BP201",
        "x = self.one(x, x)\nx = self.one(x, x)\nreturn self.head(x)",
    ),
    "one of another class and the same shapes is called twice": _net(
        "self.one = nn.LazyLinear(dim)\nself.two = nn.Linear(dim, dim)  # <- BP201",
        "x = self.one(x)\nx = self.one(x)\nreturn self.head(x)",
    ),
    "a twin elsewhere in the model is called twice": _net(
        "self.two = nn.Linear(dim, dim)  # <- BP201\nself.deep = nn.ModuleList([nn.ModuleList([nn.Linear(dim, dim)])])",
        "x = self.deep[0][0](x)\nx = self.deep[0][0](x)\nreturn self.head(x)",
    ),
    "its twin is called once in each forward pass": _net(
        "self.one = nn.Linear(dim, dim)\nself.two = nn.Linear(dim, dim)  # <- BP201",
        "return self.head(self.one(x))",
    ),
    "called after training": _net(
        "self.one = nn.Linear(dim, dim)", "return self.head(x)", "with torch.no_grad():\n    net.one(x)"
    ),
    "frozen": _net("self.one = nn.Linear(dim, dim).requires_grad_(False)", "return self.head(x)"),
    "the run was cut short": _net("self.one = nn.Linear(dim, dim)", "return self.head(x)", "raise SystemExit(3)"),
    "a list beside what is called": _net(
        "self.ways = nn.ModuleList([nn.Linear(dim, dim)])  # <- BP201\nself.also = nn.ModuleList([nn.Linear(dim, dim)])",
        "return self.head(self.also[0](x))",
    ),
    "some members of a list": _net(
        "self.ways = nn.ModuleList([nn.Linear(dim, dim), nn.Linear(dim, dim)])", "return self.head(self.ways[0](x))"
    ),
    "all members of a list": _net(
        "self.ways = nn.ModuleList([nn.Linear(dim, dim), nn.Linear(dim, dim)])  # <- BP201", "return self.head(x)"
    ),
    "the model's methods are called, not the model": """
import torch
from torch import nn

class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(4, 2), nn.Linear(2, 4)

    def encode(self, x):
        return nn.functional.linear(x, self.inner.weight, self.inner.bias)

    def decode(self, z):
        return self.outer(z)

net = Coder()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    x = torch.randn(5, 4)
    optimizer.zero_grad()
    (net.decode(net.encode(x)) - x).square().mean().backward()
    optimizer.step()
""",
    "a module of the script, in no class": """
import torch
from torch import nn
body, head = nn.Linear(4, 4), nn.Linear(4, 1)
spare = nn.Linear(4, 4)  # <- BP201
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters(), *spare.parameters()], lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    head(body(torch.randn(5, 4))).square().mean().backward()
    optimizer.step()
""",
    "in no optimizer": """
import torch
from torch import nn
body, spare = nn.Linear(4, 4), nn.Linear(4, 4)
optimizer = torch.optim.SGD(body.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    body(torch.randn(5, 4)).square().mean().backward()
    optimizer.step()
""",
    "no step was taken": """
import torch
from torch import nn
body, spare = nn.Linear(4, 4), nn.Linear(4, 4)
optimizer = torch.optim.SGD([*body.parameters(), *spare.parameters()], lr=0.1)
optimizer.step()  # <- BP707
print(body(torch.randn(5, 4)).sum())
""",
    "a class of a library holds it": """
import torch
from torch import nn
net = nn.MultiheadAttention(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    nn.functional.linear(torch.randn(5, 4), net.in_proj_weight).square().mean().backward()
    optimizer.step()
""",
    "a copy runs, and its gradients are assigned": """
import copy
import torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(4, 8, 2):
    clone = copy.deepcopy(model)
    found = torch.autograd.grad(clone(x).pow(2).mean(), clone.parameters())
    for p, g in zip(model.parameters(), found):
        p.grad = g
    optimizer.step()
""",
}
