"""BP606 graph-break-non-differentiable."""

PROGRAMS = {
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
