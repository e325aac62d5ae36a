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
}
