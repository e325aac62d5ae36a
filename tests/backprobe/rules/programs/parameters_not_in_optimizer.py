"""BP701 parameters-not-in-optimizer."""

LOOP = """
for _ in range(3):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    encoder.zero_grad()
    (decoder(encoder(x)) - x).pow(2).mean().backward()
    optimizer.step()
"""

NETS = "import torch\nfrom torch import nn\nencoder, decoder = nn.Linear(4, 2), nn.Linear(2, 4)\n"

_THAWED = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        for block in self.blocks:
            x = block(x).relu()
        return self.head(x)

    def thaw(self, epoch, last=1):
        {thaw}

net = Net()
net.blocks.requires_grad_(False)
opt = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1)
for epoch in range(4):
    {call}
    {more}
    for x in torch.randn(2, 8, 4):
        opt.zero_grad()
        net(x).pow(2).mean().backward()
        opt.step()
"""


def _thawed(*, thaw: str, call: str, more: str = "pass") -> str:
    return _THAWED.format(thaw=thaw, call=call, more=more)


PROGRAMS = {
    "thawed by a function that only thaws": _thawed(
        thaw="""for block in self.blocks[-last:]:
            block.requires_grad_(True)""",
        call="""if epoch == 1:
        net.thaw(epoch)  # <- BP701""",
    ),
    "thawed by a function that decides": _thawed(
        thaw="""if epoch == 1:
            for p in self.blocks.parameters():
                p.requires_grad = True  # <- BP701""",
        call="net.thaw(epoch)",
    ),
    "thawed by a function, and given to the optimizer": _thawed(
        thaw="self.blocks[-1].requires_grad_(True)",
        call="""if epoch == 1:
        net.thaw(epoch)""",
        more="""if epoch == 1:
        opt.add_param_group({"params": net.blocks[-1].parameters()})""",
    ),
    "written in place through .data": NETS
    + """
optimizer = torch.optim.SGD(decoder.parameters(), lr=0.1)
for _ in range(3):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    encoder.zero_grad()
    (decoder(encoder(x)) - x).pow(2).mean().backward()
    optimizer.step()
    for p in encoder.parameters():
        p.data.sub_(p.grad, alpha=0.1)
""",
    "the first of two lacks a part of its own module": NETS
    + """
net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
first = torch.optim.SGD(net[0].parameters(), lr=0.1)  # <- BP701
second = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)
for _ in range(3):
    x = torch.randn(8, 4)
    first.zero_grad()
    second.zero_grad()
    (decoder(encoder(net(x))) - x).pow(2).mean().backward()
    first.step()
    second.step()
""",
    "a run that stopped after three steps": NETS
    + """
optimizer = torch.optim.SGD(decoder.parameters(), lr=0.1)  # <- BP701
"""
    + LOOP
    + "raise SystemExit(1)\n",
    "two that are left out": NETS
    + """
third = nn.Linear(4, 4)
optimizer = torch.optim.SGD(decoder.parameters(), lr=0.1)  # <- BP701
for _ in range(3):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    (decoder(encoder(third(x))) - x).pow(2).mean().backward()
    optimizer.step()
""",
    "the module is not visible where the optimizer is built": NETS
    + """
def build(params):
    return torch.optim.SGD(params, lr=0.1)

optimizer = build(decoder.parameters())  # <- BP701
"""
    + LOOP,
    "the rest is filtered out by a comprehension": NETS
    + """
named = [*encoder.named_parameters(), *decoder.named_parameters()]
chosen = [p for _, p in named if p.shape != (2, 4)]  # <- BP701
optimizer = torch.optim.SGD(chosen, lr=0.1)
"""
    + LOOP,
    "a list named before": NETS
    + """
chosen = list(decoder.parameters())  # <- BP701
optimizer = torch.optim.SGD(chosen, lr=0.1)
"""
    + LOOP,
    "given by its name, in groups": NETS
    + """
optimizer = torch.optim.SGD(
    params=[{"params": decoder.parameters()}],  # <- BP701
    lr=0.1,
)
"""
    + LOOP,
    "written through .data": NETS
    + """
optimizer = torch.optim.SGD(decoder.parameters(), lr=0.1)
for _ in range(3):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    encoder.zero_grad()
    (decoder(encoder(x)) - x).pow(2).mean().backward()
    optimizer.step()
    for p in encoder.parameters():
        p.data -= 0.1 * p.grad
""",
    "gradients are logged, not used": NETS
    + """
optimizer = torch.optim.SGD(decoder.parameters(), lr=0.1)  # <- BP701
for _ in range(3):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    encoder.zero_grad()
    (decoder(encoder(x)) - x).pow(2).mean().backward()
    optimizer.step()
    print([p.grad.norm().item() for p in encoder.parameters()])
""",
    "one step is no pattern": NETS
    + """
optimizer = torch.optim.SGD(decoder.parameters(), lr=0.1)
x = torch.randn(8, 4)
(decoder(encoder(x)) - x).pow(2).mean().backward()
optimizer.step()
""",
    "two steps of a run cut short prove nothing": NETS
    + """
optimizer = torch.optim.SGD(decoder.parameters(), lr=0.1)
for step in range(3):
    x = torch.randn(8, 4)
    if step == 2:
        raise SystemExit(1)
    optimizer.zero_grad()
    (decoder(encoder(x)) - x).pow(2).mean().backward()
    optimizer.step()
""",
    "evaluated after training": NETS
    + """
optimizer = torch.optim.SGD(decoder.parameters(), lr=0.1)  # <- BP701
"""
    + LOOP
    + """
encoder.eval()
decoder.eval()
with torch.no_grad():
    decoder(encoder(torch.randn(8, 4)))
""",
    "evaluated after each epoch, with gradients on": NETS
    + """
optimizer = torch.optim.SGD(decoder.parameters(), lr=0.1)  # <- BP701
for _ in range(3):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    encoder.train()
    (decoder(encoder(x)) - x).pow(2).mean().backward()
    optimizer.step()
    encoder.eval()
    print(decoder(encoder(x)).detach().norm() > 0)
""",
    "frozen after training": NETS
    + """
optimizer = torch.optim.SGD(decoder.parameters(), lr=0.1)  # <- BP701
"""
    + LOOP
    + "encoder.requires_grad_(False)\ndecoder.requires_grad_(False)\n",
    "put into evaluation mode while the other one is trained": NETS
    + """
optimizer = torch.optim.SGD(decoder.parameters(), lr=0.1)
encoder(torch.randn(8, 4))
encoder.eval()
"""
    + LOOP
    + "encoder.train()\nencoder(torch.randn(8, 4))\n",
    "frozen after a while": NETS
    + """
optimizer = torch.optim.SGD(decoder.parameters(), lr=0.1)
"""
    + LOOP
    + "encoder.requires_grad_(False)\n"
    + LOOP,
    "an optimizer that never steps lacks nothing": NETS
    + """
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
unused = torch.optim.SGD(decoder.parameters(), lr=0.1)
for _ in range(3):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    decoder.zero_grad()
    (decoder(encoder(x)) - x).pow(2).mean().backward()  # <- BP706
    optimizer.step()
""",
    "the module of several that has no optimizer": NETS
    + """
third = nn.Linear(4, 4)
first = torch.optim.SGD(decoder.parameters(), lr=0.1)
second = torch.optim.SGD(third.parameters(), lr=0.1)  # <- BP701
for _ in range(3):
    x = torch.randn(8, 4)
    first.zero_grad()
    (decoder(x[:, :2]) - x).pow(2).mean().backward()
    first.step()
    second.zero_grad()
    (third(encoder(x).repeat(1, 2)) - x).pow(2).mean().backward()
    second.step()
""",
    "a part of one module, chosen by its parent": """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return self.head(self.body(x))

class Trainer:
    def __init__(self, net):
        self.net = net
        self.optimizer = torch.optim.SGD(net.head.parameters(), lr=0.1)  # <- BP701

    def fit(self):
        for _ in range(3):
            x = torch.randn(8, 4)
            self.optimizer.zero_grad()
            (self.net(x) - x).pow(2).mean().backward()
            self.optimizer.step()

Trainer(Net()).fit()
""",
    "the optimizer holds another instance, and finds no gradient": """
import torch
from torch import nn
net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(nn.Linear(3, 1).parameters(), lr=0.1)  # <- BP701
for x in torch.randn(4, 5, 3):
    net.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
""",
    "thawed for a second phase, whose optimizer was given the rest": """
import torch
from torch import nn

body, head = nn.Sequential(nn.Linear(4, 6), nn.Tanh()), nn.Linear(6, 1)
first = torch.optim.SGD(body.parameters(), lr=0.1)
for x in torch.randn(3, 8, 4):
    first.zero_grad()
    (body(x)[:, :4] - x).pow(2).mean().backward()
    first.step()
body.requires_grad_(False)
second = torch.optim.SGD(head.parameters(), lr=0.1)
for epoch in range(4):
    if epoch == 1:
        body.requires_grad_(True)  # <- BP701
    for x in torch.randn(2, 8, 4):
        second.zero_grad()
        (head(body(x)) - x[:, :1]).pow(2).mean().backward()
        second.step()
""",
    "a phase has ended, and another optimizer trains the head alone": """
import torch
from torch import nn

body, head = nn.Sequential(nn.Linear(4, 6), nn.Tanh()), nn.Linear(6, 1)
first = torch.optim.SGD(body.parameters(), lr=0.1)
for x in torch.randn(3, 8, 4):
    first.zero_grad()
    (body(x)[:, :4] - x).pow(2).mean().backward()
    first.step()
second = torch.optim.SGD(head.parameters(), lr=0.1)
for x in torch.randn(6, 8, 4):
    second.zero_grad()
    (head(body(x)) - x[:, :1]).pow(2).mean().backward()
    second.step()
""",
    "thawed behind the optimizer": """
import torch
from torch import nn
torch.manual_seed(0)

body, head = nn.Linear(4, 8).requires_grad_(False), nn.Linear(8, 1)
opt = torch.optim.Adam([p for p in [*body.parameters(), *head.parameters()] if p.requires_grad], lr=0.01)
for epoch in range(4):
    if epoch == 2:
        body.requires_grad_(True)  # <- BP701
    for x in torch.randn(3, 8, 4):
        loss = head(body(x)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    "thawed by a helper that freezes too": """
import torch
from torch import nn
torch.manual_seed(0)

body, head = nn.Linear(4, 8), nn.Linear(8, 1)
def trainable(flag):
    for p in body.parameters():
        p.requires_grad = flag
trainable(False)
opt = torch.optim.Adam([p for p in [*body.parameters(), *head.parameters()] if p.requires_grad], lr=0.01)
def epoch():
    for x in torch.randn(3, 8, 4):
        loss = head(body(x)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
epoch()
trainable(True)  # <- BP701
epoch()
epoch()
""",
    "dealt out to groups that have a name": NETS
    + """
large, small = [], []
for name, p in [*encoder.named_parameters(), *decoder.named_parameters()]:
    if name == "bias":
        small.append(p)
    elif p.shape == (4, 2):  # <- BP701
        large.append(p)
groups = [{"params": large, "weight_decay": 0.1}, {"params": small}]
optimizer = torch.optim.SGD(groups, lr=0.1)
"""
    + LOOP,
    "dealt out to a dict of lists": NETS
    + """
groups = {"large": [], "small": []}
for name, p in [*encoder.named_parameters(), *decoder.named_parameters()]:
    if name == "bias":
        groups["small"].append(p)
    elif p.shape == (4, 2):  # <- BP701
        groups["large"].append(p)
optimizer = torch.optim.SGD([{"params": groups["large"], "weight_decay": 0.1}, {"params": groups["small"]}], lr=0.1)
"""
    + LOOP,
    "two comprehensions, and neither takes the rest": NETS
    + """
named = [*encoder.named_parameters(), *decoder.named_parameters()]
large = [p for _, p in named if p.shape == (4, 2)]
small = [p for _, p in named if p.ndim == 1]  # <- BP701
groups = [{"params": large, "weight_decay": 0.1}, {"params": small}]
optimizer = torch.optim.SGD(groups, lr=0.1)
"""
    + LOOP,
    "a function returns the groups": NETS
    + """
def groups_of(*nets):
    large, small = [], []
    for net in nets:
        for p in net.parameters():
            if p.ndim == 1:
                small.append(p)
            elif p.shape == (4, 2):  # <- BP701
                large.append(p)
    return [{"params": large, "weight_decay": 0.1}, {"params": small}]

optimizer = torch.optim.SGD(groups_of(encoder, decoder), lr=0.1)
"""
    + LOOP,
    "dealt out, and the rest is taken": NETS
    + """
large, small = [], []
for p in [*encoder.parameters(), *decoder.parameters()]:
    if p.shape == (4, 2):
        large.append(p)
    else:
        small.append(p)
groups = [{"params": large, "weight_decay": 0.1}, {"params": small}]
optimizer = torch.optim.SGD(groups, lr=0.1)
"""
    + LOOP,
    "a group that nobody appends is told at the optimizer": NETS
    + """
groups = []
group = {"params": [p for p in decoder.parameters() if p.requires_grad]}
groups.append(group)
group = {"params": [p for p in encoder.parameters() if p.requires_grad]}
optimizer = torch.optim.SGD(groups, lr=0.1)  # <- BP701
"""
    + LOOP,
}
