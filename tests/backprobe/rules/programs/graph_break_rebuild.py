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
    "a list of tensors and a number": """
import torch

torch.manual_seed(0)
start = torch.tensor(0.3, requires_grad=True)
opt = torch.optim.SGD([start], lr=0.1)
wanted = torch.tensor([0.2, 0.8, 0.1])
rate = torch.tensor(1.0, requires_grad=True)
opt.add_param_group({"params": [rate]})
for _ in range(3):
    opt.zero_grad()
    share = start.sigmoid()
    state = torch.tensor([1 - share, share, 0.0])  # <- BP605
    loss = (state * rate - wanted).square().sum()
    loss.backward()
    opt.step()
""",
}
