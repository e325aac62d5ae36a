"""BP714 tensor-not-registered."""

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 2)
        {made}

    def forward(self, x):
        {passed}

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn({turns}, 8, 3):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
"""


def net(made: str, passed: str = "return self.inner(x) * self.gain", *, turns: int = 3) -> str:
    """A network that holds a factor in some way."""
    return NET.format(made=made, passed=passed, turns=turns)


LISTED = """
import torch
from torch import nn

class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.gains = {made}
        self.out = nn.Linear(2, 1)

    def forward(self, x):
        return self.out(x * self.gains[0] * self.gains[1])

net = Scaled()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 8, 2):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
"""

PROGRAMS = {
    "flagged afterwards": net("self.gain = torch.ones(2)  # <- BP714\n        self.gain.requires_grad_()"),
    "made by a method": net("self.reset()").replace(
        "    def forward",
        "    def reset(self):\n        self.gain = torch.ones(2, requires_grad=True)  # <- BP714\n\n    def forward",
    ),
    "one turn is no pattern": net("self.gain = torch.ones(2, requires_grad=True)", turns=1),
    "made anew in each pass": net(
        "self.gain = None",
        "self.gain = torch.ones(2, requires_grad=True)\n        return self.inner(x) * self.gain",
    ),
    "registered as a parameter later": net("self.gain = nn.Parameter(torch.ones(2))"),
    "written by hand": net("self.gain = torch.ones(2, requires_grad=True)")
    + """    with torch.no_grad():
        net.gain -= 0.1 * net.gain.grad
        net.gain.grad = None
""",
    "held by an optimizer of its own": net("self.gain = torch.ones(2, requires_grad=True)").replace(
        "for x in", "second = torch.optim.SGD([net.gain], lr=0.1)\nfor x in"
    )
    + "    second.step()\n    second.zero_grad()\n",
    "an optimizer that holds no parameter": net("self.gain = torch.ones(2, requires_grad=True)").replace(
        "torch.optim.SGD(net.parameters(), lr=0.1)",
        "torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)  # <- BP701",
    ),
    "not an attribute of a module": """
import torch
from torch import nn

net, gain = nn.Linear(3, 2), torch.ones(2, requires_grad=True)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 8, 3):
    optimizer.zero_grad()
    (net(x) * gain).pow(2).mean().backward()
    optimizer.step()
""",
    "Parameters in a plain list": LISTED.format(made="[nn.Parameter(torch.ones(2)) for _ in range(2)]  # <- BP714"),
    "Parameters in a plain dict": LISTED.format(
        made="{0: nn.Parameter(torch.ones(2)), 1: nn.Parameter(torch.ones(2))}  # <- BP714"
    ),
    "tensors in a plain tuple": LISTED.format(
        made="(torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True))  # <- BP714"
    ),
    "Parameters in a plain list that are registered beside it": LISTED.format(
        made="[nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))]"
    ).replace(
        "        self.out =",
        """        for at, one in enumerate(self.gains):
            self.register_parameter(f"gain{at}", one)
        self.out =""",
    ),
}
