"""BP606 graph-break-non-differentiable."""

PROGRAMS = {
    "rows of the chosen expert are written by a mask": """
import torch
from torch import nn


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router, self.experts = nn.Linear(4, 3), nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        gates = self.router(x).softmax(-1)
        choice, out = gates.argmax(-1), torch.zeros_like(x)
        for at, expert in enumerate(self.experts):
            rows = choice == at
            if rows.any():
                out[rows] = expert(x[rows])  # <- BP606
        return x + out


torch.manual_seed(0)
net, head = Experts(), nn.Linear(4, 1)
opt = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
for x in torch.randn(3, 12, 4):
    opt.zero_grad()
    head(net(x)).pow(2).mean().backward()
    opt.step()
""",
    "rows of the chosen expert are added by their numbers": """
import torch
from torch import nn


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router, self.experts = nn.Linear(4, 3), nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        gates = self.router(x).softmax(-1)
        weight, choice = gates.max(-1)
        out = torch.zeros_like(x)
        for at in range(3):
            rows = (choice == at).nonzero().squeeze(1)
            out = out.index_add(0, rows, self.experts[at](x[rows]))  # <- BP606
        return x + out


torch.manual_seed(0)
net, head = Experts(), nn.Linear(4, 1)
opt = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
for x in torch.randn(3, 12, 4):
    opt.zero_grad()
    head(net(x)).pow(2).mean().backward()
    opt.step()
""",
    "rows of the chosen expert times its gate": """
import torch
from torch import nn


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router, self.experts = nn.Linear(4, 3), nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        gates = self.router(x).softmax(-1)
        choice, out = gates.argmax(-1), torch.zeros_like(x)
        for at, expert in enumerate(self.experts):
            rows = torch.where(choice == at)[0]
            if len(rows):
                out = out.index_copy(0, rows, gates[rows, at, None] * expert(x[rows]))
        return x + out


torch.manual_seed(0)
net, head = Experts(), nn.Linear(4, 1)
opt = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
for x in torch.randn(3, 12, 4):
    opt.zero_grad()
    head(net(x)).pow(2).mean().backward()
    opt.step()
""",
    "rows of the chosen expert, weighted afterwards": """
import torch
from torch import nn


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router, self.experts = nn.Linear(4, 3), nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        gates = self.router(x).softmax(-1)
        weight, choice = gates.max(-1)
        out = torch.zeros_like(x)
        for at, expert in enumerate(self.experts):
            rows = choice == at
            if rows.any():
                out[rows] = expert(x[rows])
        out = out * weight[:, None]
        return x + out


torch.manual_seed(0)
net, head = Experts(), nn.Linear(4, 1)
opt = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
for x in torch.randn(3, 12, 4):
    opt.zero_grad()
    head(net(x)).pow(2).mean().backward()
    opt.step()
""",
    "experts weighted by a one-hot choice": """
import torch
from torch import nn


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router, self.experts = nn.Linear(4, 3), nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        gates = self.router(x).softmax(-1)
        choice = torch.nn.functional.one_hot(gates.argmax(-1), 3).float()  # <- BP606
        out = sum(choice[:, at : at + 1] * expert(x) for at, expert in enumerate(self.experts))
        return x + out


torch.manual_seed(0)
net, head = Experts(), nn.Linear(4, 1)
opt = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
for x in torch.randn(3, 12, 4):
    opt.zero_grad()
    head(net(x)).pow(2).mean().backward()
    opt.step()
""",
    "one of two layers for each row, in a script": """
import torch
from torch import nn

torch.manual_seed(0)
gate, left, right = nn.Linear(4, 2), nn.Linear(4, 2), nn.Linear(4, 2)
opt = torch.optim.SGD([*gate.parameters(), *left.parameters(), *right.parameters()], lr=0.1)
for x in torch.randn(3, 16, 4):
    first = gate(x).argmax(1) == 0
    out = right(x)
    out[first] = left(x[first])  # <- BP606
    opt.zero_grad()
    out.pow(2).mean().backward()
    opt.step()
""",
    "a loss of counts raises": """
import torch
from torch import nn

net = nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
wrong = (net(x).argmax(1) != y).float()  # <- BP606
loss = wrong.mean()
loss.backward()
""",
    "a cast to integers": """
import torch
from torch import nn

step, layer = nn.Parameter(torch.rand(5) * 3), nn.Linear(5, 1)
opt = torch.optim.SGD([step, *layer.parameters()], lr=0.1)
for _ in range(3):
    level = step.to(torch.long)  # <- BP606
    loss = layer(level.float()).pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "the places of a sort": """
import torch
from torch import nn

rank, layer = nn.Linear(5, 5), nn.Linear(5, 1)
opt = torch.optim.SGD([*rank.parameters(), *layer.parameters()], lr=0.1)
for x in torch.randn(3, 5):
    order = rank(x).argsort()  # <- BP606
    loss = layer(x[order]).pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a mask of what is taken further": """
import torch
from torch import nn

net = nn.Linear(5, 5)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 4, 5):
    out = net(x)
    loss = out[out > 0].pow(2).sum() + out.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}

_CODES = """
import torch
from torch import nn

enc, dec, book = nn.Linear(6, 4), nn.Linear(4, 6), nn.Embedding(8, 4)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters(), *book.parameters()], lr=1e-3)
for x in torch.randn(4, 12, 6):
    z = enc(x)
    {body}
    loss = loss + (codes - z.detach()).square().mean() + 0.25 * (z - codes.detach()).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


_DETACHED = """
import torch
from torch import nn

enc, dec, book = nn.Linear(6, 4), nn.Linear(4, 6), nn.Embedding(8, 4)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters(), *book.parameters()], lr=1e-3)
for x in torch.randn(4, 12, 6):
    z = enc(x)
    codes = book(torch.cdist(z, book.weight).argmin(1))  # <- BP606
    loss = (dec(codes) - x).square().mean() + {loss}
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def _codes(*lines: str) -> str:
    return _CODES.format(body="\n    ".join(lines))


PROGRAMS |= {
    "codes are decoded as they were looked up": _codes(
        "index = torch.cdist(z, book.weight).argmin(1)  # <- BP606",
        "codes = book(index)",
        "loss = (dec(codes) - x).square().mean()",
    ),
    "codes taken from the table by index": _codes(
        "apart = (z[:, None] - book.weight).square().sum(-1)",
        "codes = book.weight[apart.argmin(dim=-1)]  # <- BP606",
        "loss = (dec(codes) - x).square().mean()",
    ),
    "a straight-through estimator hands the codes on": _codes(
        "codes = book(torch.cdist(z, book.weight).argmin(1))",
        "loss = (dec(z + (codes - z).detach()) - x).square().mean()",
    ),
    "codes that only attract": _codes(
        "codes = book(torch.cdist(z, book.weight).argmin(1))", "loss = (dec(z) - x).square().mean()"
    ),
    "the nearest of another table": _codes(
        "with torch.no_grad():",
        "    near = torch.cdist(z, x[:8, :4]).argmin(1)",
        "codes = book(near)",
        "loss = (dec(codes) - x).square().mean() + (dec(z) - x).square().mean()",
    ),
    "codes are decoded as they were looked up, the codebook's target is detached": _DETACHED.format(
        loss="nn.functional.mse_loss(codes, z.detach())"
    ),
    "the same with a difference as the codebook's loss": _DETACHED.format(loss="(codes - z.detach()).square().mean()"),
}

_LAYER = """
import torch
from torch import nn


class Codebook(nn.Module):
    def __init__(self):
        super().__init__()
        self.book = nn.Embedding(8, 4)

    def forward(self, z):
        flat = z.flatten(0, 1)
        index = torch.cdist(flat, self.book.weight).argmin(1).view(z.shape[:2]){mark}
        codes = self.book(index)
        loss = (codes - z.detach()).square().mean() + 0.25 * (z - codes.detach()).square().mean()
        return {given}.transpose(1, 2), loss


class Codec(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.quantizer, self.dec = nn.Linear(6, 4), Codebook(), nn.Conv1d(4, 6, 1)

    def forward(self, x):
        codes, loss = self.quantizer(self.enc(x))
        return self.dec(codes).transpose(1, 2), loss


codec = Codec()
opt = torch.optim.Adam(codec.parameters(), lr=1e-3)
for x in torch.randn(4, 3, 5, 6):
    back, loss = codec(x)
    opt.zero_grad()
    ((back - x).square().mean() + loss).backward()
    opt.step()
"""

PROGRAMS |= {
    "a layer of codes gives them in another shape": _LAYER.format(given="codes", mark="  # <- BP606"),
    "a layer of codes estimates straight through before it gives them": _LAYER.format(
        given="(z + (codes - z).detach())", mark=""
    ),
    "codes are decoded as a batch of one": _codes(
        "index = torch.cdist(z, book.weight).argmin(1).unsqueeze(0)  # <- BP606",
        "codes = book(index)",
        "loss = (dec(codes.squeeze(0)) - x).square().mean()",
    ),
}

_ROUTED = """
import torch
from torch import nn


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router, self.experts = nn.Linear(4, 3), nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        gates = self.router(x).softmax(-1)
        choice = gates.argmax(-1){chosen}
        out = torch.zeros_like(x)
        for at, expert in enumerate(self.experts):
            rows = torch.where(choice == at)[0]
            {lines}
        return x + out


torch.manual_seed(0)
net, head = Experts(), nn.Linear(4, 1)
opt = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
for x in torch.randn(3, 12, 4):
    opt.zero_grad()
    head(net(x)).pow(2).mean().backward()
    opt.step()
"""


def _routed(*lines: str, chosen: str = "") -> str:
    return _ROUTED.format(lines="\n            ".join(lines), chosen=chosen)


PROGRAMS |= {
    "what the chosen expert gives has a name": _routed(
        "given = expert(x[rows])", "out = out.index_copy(0, rows, given)  # <- BP606"
    ),
    "the rows of the chosen expert have a name too": _routed(
        "taken = x[rows]", "given = expert(taken)", "out[rows] = given  # <- BP606"
    ),
    "what the chosen expert gives has a name, times its gate": _routed(
        "given = expert(x[rows])", "weighted = given * gates[rows, at, None]", "out[rows] = weighted"
    ),
    "what the chosen expert gives is halved under a name": _routed(
        "given = expert(x[rows])", "half = given * 0.5", "out[rows] = half", chosen="  # <- BP606"
    ),
    "what the chosen expert gives has a name that has a new value": _routed(
        "given = expert(x[rows])", "given = given.relu()", "out[rows] = given", chosen="  # <- BP606"
    ),
    "what is made of the chosen rows, which no module is called for": _routed(
        "x = expert(x)", "given = torch.tanh(x[rows])", "out[rows] = given", chosen="  # <- BP606"
    ),
}
