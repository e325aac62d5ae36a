"""BP703 module-not-registered."""

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        {held}

    def forward(self, x):
        return {used}

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1){mark}
for x in torch.randn({turns}, 8, 3):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
"""

BUILT = """
import torch
from torch import nn

def block(width):
    return nn.Sequential(nn.Linear(width, width), nn.Tanh())

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        {held}

    def forward(self, x):
        return {used}

net = Net()
optimizer = torch.optim.SGD({given}, lr=0.1)
for x in torch.randn(3, 8, 3):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
"""


def built(held: str, used: str, *, given: str = "net.parameters()") -> str:
    """A network whose further layers a function builds."""
    return BUILT.format(held=held, used=used, given=given)


def net(held: str, used: str, *, turns: int = 3, mark: str = "") -> str:
    """A network that holds its second layer in some way."""
    return NET.format(held=held, used=used, turns=turns, mark=mark)


PROGRAMS = {
    "appended": net(
        "self.rest = []\n        self.rest.append(nn.Linear(4, 1))  # <- BP703", "self.rest[0](self.first(x))"
    ),
    "a dict, filled by key": net(
        'self.rest = {}\n        self.rest["a"] = nn.Linear(4, 1)  # <- BP703', 'self.rest["a"](self.first(x))'
    ),
    "a list of its own name": net(
        "layers = [nn.Linear(4, 1)]  # <- BP703\n        self.rest = layers", "self.rest[0](self.first(x))"
    ),
    "a tuple of a generator": net(
        "self.rest = tuple(nn.Linear(4, 4) for _ in range(2))  # <- BP703", "self.rest[1](self.rest[0](self.first(x)))"
    ),
    "one turn is no pattern": net("self.rest = [nn.Linear(4, 1)]", "self.rest[0](self.first(x))", turns=1),
    "hidden in another way": net(
        'object.__setattr__(self, "rest", nn.Linear(4, 1))', "self.rest(self.first(x))", mark="  # <- BP701"
    ),
    "written by hand": net("self.rest = [nn.Linear(4, 1)]", "self.rest[0](self.first(x))")
    + """    with torch.no_grad():
        for p in net.rest[0].parameters():
            p -= 0.1 * p.grad
            p.grad = None
""",
    "nothing steps": net("self.rest = [nn.Linear(4, 1)]", "self.rest[0](self.first(x))").replace(
        "    optimizer.step()\n", "    print(net.first.weight.grad.norm())\n"
    ),
    "a dict of containers": """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.ways = {n: nn.Sequential(nn.Linear(4, 4), nn.ReLU()) for n in ("a", "b")}  # <- BP703
        self.out = nn.Linear(4, 1)

    def forward(self, x):
        return self.out(sum(way(x) for way in self.ways.values()))


net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(4, 8, 4):
    opt.zero_grad()
    net(x).pow(2).mean().backward()
    opt.step()
""",
    "a module dict that registers, filled behind the optimizer": """
import torch
from torch import nn

torch.manual_seed(0)
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.adapters = nn.Linear(4, 4), nn.ModuleDict()

    def forward(self, x):
        x = self.lin(x)
        for adapter in self.adapters.values():
            x = x + adapter(x)
        return x

net = Layer()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)  # <- BP701
net.adapters["task"] = nn.Linear(4, 4)
for x in torch.randn(6, 8, 4):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
""",
    "a dict of what a function builds": built(
        'self.ways = {name: block(4) for name in ("a", "b")}  # <- BP703',
        'self.ways["b"](self.ways["a"](self.first(x)))',
    ),
    "a list that maps a function": built(
        "self.rest = list(map(block, (4, 4)))  # <- BP703", "self.rest[1](self.rest[0](self.first(x)))"
    ),
    "appended in a loop, as a method builds them": built(
        """self.rest = []
        for _ in range(2):
            self.rest.append(self.make(4))  # <- BP703

    def make(self, width):
        made = nn.Linear(width, width)
        nn.init.orthogonal_(made.weight)
        return made""",
        "self.rest[1](self.rest[0](self.first(x)))",
    ),
    "a function returns the list": built(
        """self.rest = self.layers(2)  # <- BP703

    def layers(self, depth):
        return [nn.Linear(4, 4) for _ in range(depth)]""",
        "self.rest[1](self.rest[0](self.first(x)))",
    ),
    "what a function builds goes into a module dict": built(
        'self.ways = nn.ModuleDict({name: block(4) for name in ("a", "b")})',
        'self.ways["b"](self.ways["a"](self.first(x)))',
    ),
    "what a function builds is given to the optimizer": built(
        'self.ways = {"a": block(4)}',
        'self.ways["a"](self.first(x))',
        given='[*net.parameters(), *net.ways["a"].parameters()]',
    ),
    "what a function builds is frozen": built(
        'self.ways = {"a": block(4).requires_grad_(False)}', 'self.ways["a"](self.first(x))'
    ),
    "a function builds both the list and a registered layer": built(
        "self.second, self.rest = block(4), nn.ModuleList([block(4)])", "self.rest[0](self.second(self.first(x)))"
    ),
}
