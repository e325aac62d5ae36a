"""BP220 zero-gradient-op."""

_LOOP = """
import torch
from torch import nn

first, second = nn.Linear(4, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    hidden = first(torch.randn(8, 4))
    {body}
    loss.backward()
    optimizer.step()
"""

DRAWN = """
import torch
from torch import nn
encoder, decoder = nn.Linear(3, 4), nn.Linear(2, 3)
optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)
for x in torch.randn(3, 8, 3):
    mean, rest = encoder(x).chunk(2, -1)
    std = rest.exp()
    z = {z}
    optimizer.zero_grad()
    (decoder(z) - x).pow(2).mean().backward()
    optimizer.step()
"""

_THROUGH = """
import torch
from torch import nn

torch.manual_seed(2)
enc, dec, book = nn.Linear(6, 4), nn.Linear(4, 6), nn.Embedding(8, 4)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters(), *book.parameters()], 1e-2)
for x in torch.randn(4, 12, 6):
    z = enc(x)
    codes = book(torch.cdist(z.detach(), book.weight.detach()).argmin(1))
    {line}
    vq = (codes - z.detach()).square().mean() + 0.25 * (z - codes.detach()).square().mean()
    loss = (dec(q) - x).square().mean() + vq
    opt.zero_grad()
    loss.backward()
    opt.step()
"""

PROGRAMS = {
    "inside an expression": _LOOP.format(body="loss = second(hidden.sigmoid().round()).square().mean()  # <- BP220"),
    "a sample of bernoulli": _LOOP.format(
        body="mask = torch.bernoulli(hidden.sigmoid())  # <- BP220\n    loss = second(mask).square().mean()"
    ),
    "rounded to decimals": _LOOP.format(
        body="coarse = torch.round(hidden, decimals=1)  # <- BP220\n    loss = second(coarse).square().mean()"
    ),
    "the same values also go another way": _LOOP.format(body="loss = second(hidden + hidden.sign()).square().mean()"),
    "no gradient comes to the rounding either": _LOOP.format(
        body="loss = (second(hidden.round()) * 0).sum() + hidden.sum() * 0"
    ),
    "its own parameters are not in any optimizer and no module": """
import torch
image = torch.rand(3, requires_grad=True)
weight = torch.nn.Parameter(torch.ones(3))
(image.round() * weight).sum().backward()
""",
    "what is drawn from a mean and a deviation": DRAWN.format(z="torch.normal(mean, std)  # <- BP220"),
    "what is drawn beside them": DRAWN.format(z="mean + std * torch.normal(torch.zeros(8, 2), torch.ones(8, 2))"),
    "codes go straight through without a detach": _THROUGH.format(line="q = z + (codes - z)  # <- BP220"),
    "the same, the difference first": _THROUGH.format(line="q = (codes - z) + z  # <- BP220"),
    "the same, the difference has a name": _THROUGH.format(line="gap = codes - z\n    q = z + gap  # <- BP220"),
    "a difference that has a name and goes first": _THROUGH.format(line="gap = codes - z\n    q = gap + z  # <- BP220"),
    "right: a difference that has a name is used again": _THROUGH.format(
        line="gap = codes - z\n    q = z + gap\n    size = gap.square().mean()"
    ),
    "right: a difference that has a name is detached": _THROUGH.format(
        line="gap = codes - z\n    gap = gap.detach()\n    q = z + gap"
    ),
    "right: what is taken away has a new value before it is added": _THROUGH.format(
        line="gap = codes - z\n    z = z.tanh()\n    q = z + gap"
    ),
    "right: a product that has a name": _THROUGH.format(line="gap = codes * z\n    q = z + gap"),
    "right: codes go straight through": _THROUGH.format(line="q = z + (codes - z).detach()"),
    "right: a way between codes and input": _THROUGH.format(line="q = z + 0.5 * (codes - z)"),
    "right: another value is taken away": _THROUGH.format(line="q = z + (codes - z.detach())"),
    "a step function's difference is not detached": """
import torch
from torch import nn

torch.manual_seed(2)
layer, head = nn.Linear(5, 6), nn.Linear(6, 1)
opt = torch.optim.Adam([*layer.parameters(), *head.parameters()], 1e-2)

def binary(p):
    hard = (p > 0.5).float()
    return p - (p - hard)  # <- BP220

for x in torch.randn(4, 16, 5):
    loss = head(binary(layer(x).sigmoid())).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}
