"""BP221 dead-activation."""

_LOOP = """
import torch
from torch import nn

first, second = nn.Linear(4, 6), nn.Linear(6, 2)
nn.init.constant_(first.bias, {bias}){start}
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.01)
for turn in range({turns}):
    rows = torch.randn(8, 4)
    {body}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def _loop(body: str, bias: float = -40.0, turns: int = 4, start: str = "") -> str:
    return _LOOP.format(body=body, bias=bias, turns=turns, start=start)


SHAPES = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
"""

PROGRAMS = {
    "inside an expression": _loop("loss = second(first(rows).relu()).square().mean()", start="  # <- BP221"),
    "above the upper bound": _loop(
        "kept = first(rows).clamp(-1, 1)  # <- BP221\n    loss = second(kept).square().mean()", bias=40.0
    ),
    "the second of two in one statement": _loop(
        "loss = second(first(rows.requires_grad_().relu()).relu()).square().mean()", start="  # <- BP221"
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
    "GAN, critic's biases by a function given to apply": SHAPES
    + """
def init(module):
    if isinstance(module, nn.Linear) and module.out_features > 1:
        nn.init.constant_(module.bias, -30.0)  # <- BP221

G, D = nn.Linear(4, 6), nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))
D.apply(init)
opt_g, opt_d = torch.optim.Adam(G.parameters(), 1e-3), torch.optim.Adam(D.parameters(), 1e-3)
for _ in range(5):
    fake = G(torch.randn(8, 4))
    opt_d.zero_grad()
    (F.softplus(-D(torch.randn(8, 6))) + F.softplus(D(fake.detach()))).mean().backward()
    opt_d.step()
""",
    "an offset parameter": SHAPES
    + """
class Gate(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Linear(width, width)
        self.offset = nn.Parameter(torch.full((width,), -60.0))  # <- BP221
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(F.relu(self.mix(x) + self.offset))

gate = Gate(6)
opt = torch.optim.RMSprop(gate.parameters(), lr=1e-3)
for _ in range(5):
    opt.zero_grad()
    (gate(torch.randn(8, 6)) - 1).pow(2).mean().backward()
    opt.step()
""",
    "biases start at a constant that is fine": SHAPES
    + """
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
for layer in net:
    if isinstance(layer, nn.Linear):
        nn.init.constant_(layer.bias, 0.01)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(5):
    opt.zero_grad()
    (net(torch.randn(16, 6)) - 1).pow(2).mean().backward()
    opt.step()
""",
}
