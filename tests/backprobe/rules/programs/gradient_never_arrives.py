"""BP202 gradient-never-arrives."""

_LOOP = """
import torch
from torch import nn

trunk, main, side = nn.Linear(5, 8), nn.Linear(8, 3), nn.Linear(8, 3)
{made}
optimizer = torch.optim.SGD([*trunk.parameters(), *main.parameters(), *side.parameters()], lr=0.1)
for turn in range({turns}):
    hidden = trunk(torch.randn(12, 5)).relu()
    {body}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
{more}
"""


def _loop(*lines: str, made: str = "", more: str = "", turns: int = 3) -> str:
    return _LOOP.format(body="\n    ".join(lines), made=made, more=more, turns=turns)


PROGRAMS = {
    "it gets no name": _loop("side(hidden)  # <- BP202", "loss = main(hidden).mean()"),
    "its name is never read": _loop("extra = side(hidden)  # <- BP202", "loss = main(hidden).mean()"),
    "its activation is bound anew": _loop(
        "extra = torch.relu(side(hidden))  # <- BP202", "extra = torch.relu(main(hidden))", "loss = extra.mean()"
    ),
    "its activation is used": _loop(
        "extra = torch.relu(side(hidden))", "extra = extra.detach() + main(hidden)  # <- BP601", "loss = extra.mean()"
    ),
    "a function of the program keeps it": _loop(
        "extra = keep(side(hidden))", "loss = main(hidden).mean()", made="kept = []\nkeep = kept.append"
    ),
    "read after the loop": _loop("extra = side(hidden)", "loss = main(hidden).mean()", more="print(extra.mean())"),
    "read in the next turn": _loop(
        "past = extra.mean().item() if turn else 0", "extra = side(hidden)", "loss = main(hidden).mean()"
    ),
    "kept in a list": _loop("kept.append(side(hidden))  # <- BP305", "loss = main(hidden).mean()", made="kept = []"),
    "used as it is bound anew": _loop("extra = side(hidden)", "extra = extra.detach()", "loss = main(hidden).mean()"),
    "called once": _loop("extra = side(hidden)", "loss = main(hidden).mean()", turns=1),
    "called without tracking": _loop("with torch.no_grad():", "    extra = side(hidden)", "loss = main(hidden).mean()"),
    "frozen": _loop("extra = side(hidden)", "loss = main(hidden).mean()", made="side.requires_grad_(False)"),
    "used in one turn": _loop(
        "extra = side(hidden)", "loss = main(hidden).mean() + (side(hidden).mean() if turn == 2 else 0)"
    ),
    "the run was cut short": _loop("extra = side(hidden)", "loss = main(hidden).mean()", more="raise SystemExit(3)"),
    "in the first statement of a function": """
import torch
from torch import nn
main, side = nn.Linear(4, 1), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*main.parameters(), *side.parameters()], lr=0.1)

def loss_of(rows):
    extra = side(rows)  # <- BP202
    return main(rows).square().mean()

for _ in range(3):
    optimizer.zero_grad()
    loss_of(torch.randn(8, 4)).backward()
    optimizer.step()
""",
    "inside a model": """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.norm = nn.Linear(4, 4), nn.LayerNorm(4)
        self.head = nn.Linear(4, 1)

    def forward(self, rows):
        rows = self.body(rows)
        self.norm(rows)  # <- BP202
        return self.head(rows)

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    net(torch.randn(8, 4)).square().mean().backward()
    optimizer.step()
""",
    "the result goes through a name, and what it became is bound anew": """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense, self.mix, self.out = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 2)

    def forward(self, x):
        dense = self.dense(x)
        y = torch.relu(dense)  # <- BP202
        mixed = self.mix(x)
        y = torch.relu(mixed)
        return self.out(y)

net = Block()
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for x in torch.randn(4, 6, 8):
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), torch.zeros(6, dtype=torch.long)).backward()
    opt.step()
""",
    "the result goes through a name, and what it became is used": """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense, self.mix, self.out = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 2)

    def forward(self, x):
        dense = self.dense(x)
        y = torch.relu(dense)
        mixed = self.mix(y)
        y = torch.relu(mixed)
        return self.out(y)

net = Block()
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for x in torch.randn(4, 6, 8):
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), torch.zeros(6, dtype=torch.long)).backward()
    opt.step()
""",
    "the result goes through a name, and both branches are used": """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense, self.mix, self.out = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 2)

    def forward(self, x):
        dense = self.dense(x)
        y = torch.relu(dense)
        mixed = self.mix(x) + y
        y = torch.relu(mixed)
        return self.out(y) + dense.mean()

net = Block()
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for x in torch.randn(4, 6, 8):
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), torch.zeros(6, dtype=torch.long)).backward()
    opt.step()
""",
}
