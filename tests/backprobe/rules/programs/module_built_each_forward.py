"""BP709 module-built-each-forward."""

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 4)
        self.late = None

    def forward(self, x):
{body}

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1){mark}
for x in torch.randn(3, 8, 3):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
"""

PROGRAMS = {
    "several layers at once": NET.format(
        body="""        head = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))  # <- BP709
        return head(self.inner(x))""",
        mark="",
    ),
    "built where it is called, without a name": NET.format(
        body="        return nn.Linear(4, 1)(nn.LayerNorm(4)(self.inner(x)))  # <- BP709", mark=""
    ),
    "once, in the first turn": NET.format(
        body="""        if self.late is None:
            self.late = nn.Linear(4, 1)
        return self.late(self.inner(x))""",
        mark="  # <- BP701",
    ),
    "what is built tracks nothing": NET.format(
        body="""        with torch.no_grad():
            noise = nn.Linear(3, 4)(x)
        return self.inner(x) + noise""",
        mark="",
    ),
    "nothing steps": NET.format(body="        return nn.Linear(4, 1)(self.inner(x))", mark="").replace(
        "    optimizer.step()\n", "    print(net.inner.weight.grad.norm())\n"
    ),
    "a parameter of what was just computed": """
import torch
from torch import nn

class Centred(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(5, 4)

    def forward(self, x):
        h = self.inner(x)
        self.shift = nn.Parameter(h.mean(0))  # <- BP709
        return h - self.shift

net = Centred()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 8, 5):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
""",
    "a parameter that the first pass makes, and an optimizer that is built behind it": """
import torch
from torch import nn

class Lazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = None

    def forward(self, x):
        if self.gain is None:
            self.gain = nn.Parameter(torch.ones(x.shape[-1]))
        return x * self.gain

net = Lazy()
net(torch.randn(8, 5))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 8, 5):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
""",
}
