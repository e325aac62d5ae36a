"""BP605 graph-break-rebuild."""

PROGRAMS = {
    "the old constructor": """
import torch
from torch import nn

a, b = nn.Linear(3, 1), nn.Linear(1, 1)
opt = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)
for x in torch.randn(3, 3):
    value = a(x)
    again = torch.Tensor([value])  # <- BP605
    loss = b(again).pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "as_tensor of one tensor keeps its history": """
import torch
from torch import nn

a, b = nn.Linear(3, 1), nn.Linear(1, 1)
opt = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)
for x in torch.randn(3, 3):
    loss = b(torch.as_tensor(a(x))).pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a rebuilt loss raises": """
import torch
w = torch.ones(3, requires_grad=True)
loss = torch.tensor((w * 2).sum())  # <- BP605
loss.backward()
""",
    "rebuilt and flagged in the middle, with more behind it": """
import torch
from torch import nn

a, b = nn.Linear(3, 4), nn.Linear(4, 1)
opt = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)
for x in torch.randn(3, 5, 3):
    h = torch.tensor(a(x).tolist(), requires_grad=True)  # <- BP603
    loss = b(h).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}
