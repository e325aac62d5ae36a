"""BP807 softmax-over-batch."""

STEP = """
import torch
from torch import nn
torch.manual_seed(0)
net, other = nn.Linear(6, 3), nn.Linear(6, 3)
opt = torch.optim.SGD([*net.parameters(), *other.parameters()], lr=0.1)
for x in torch.randn(4, 8, 6):
    y = (x[:, 0] > 0).long()
    {loss}
    opt.zero_grad()
    loss.backward()
    opt.step()
"""

PROGRAMS = {
    "the logarithm of a softmax over the batch": STEP.format(
        loss="""p = torch.softmax(net(x) + other(x), dim=0)  # <- BP807
    loss = nn.functional.nll_loss(torch.log(p + 1e-8), y)"""
    ),
    "bounded before its logarithm": STEP.format(
        loss="""p = torch.softmax(net(x) + other(x), dim=0)  # <- BP807
    loss = nn.functional.nll_loss(p.clamp(min=1e-6).log(), y)"""
    ),
    "over the classes": STEP.format(
        loss="""p = torch.softmax(net(x) + other(x), dim=1)
    loss = nn.functional.nll_loss(torch.log(p + 1e-8), y)"""
    ),
    "two of them mixed: which one is meant is not told": STEP.format(
        loss="""p, q = torch.softmax(net(x), dim=0), torch.softmax(other(x), dim=0)
    loss = nn.functional.nll_loss(torch.log(p + q), y)"""
    ),
}
