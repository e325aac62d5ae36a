"""BP340 unfit-root-gradient."""

SHAPES = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
"""

PROGRAMS = {
    "the loss as its own gradient, in a function": SHAPES
    + """
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=1e-3)

def learn(x, y):
    per_row = F.binary_cross_entropy_with_logits(net(x), y, reduction="none")
    opt.zero_grad()
    torch.autograd.backward([per_row], [per_row])  # <- BP340
    opt.step()

for _ in range(4):
    learn(torch.randn(8, 4), torch.rand(8, 1))
""",
    "a gradient of zeros made once": SHAPES
    + """
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
opt = torch.optim.Adam(net.parameters())
seed = torch.zeros(16, 3)
for _ in range(4):
    out = net(torch.randn(16, 4))
    opt.zero_grad()
    ((out - 1) ** 2).backward(gradient=seed)  # <- BP340
    opt.step()
""",
    "a vector of ones, a mask, and a residual as the gradient": SHAPES
    + """
net = nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(4):
    x, y = torch.randn(8, 4), torch.randn(8, 3)
    opt.zero_grad()
    out = net(x)
    out.backward((out - y).detach(), retain_graph=True)
    opt.step()
    opt.zero_grad()
    residual = net(x) - y
    residual.backward(residual.detach())
    opt.step()
    opt.zero_grad()
    per = (net(x) - y).pow(2)
    per.backward(torch.ones_like(per) * (torch.rand(8, 1) > 0.5))
    opt.step()
""",
}
