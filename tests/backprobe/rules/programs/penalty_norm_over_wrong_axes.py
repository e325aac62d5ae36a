"""BP819 penalty-norm-over-wrong-axes."""

_HEAD = """
import torch
from torch import nn
torch.manual_seed(0)
"""

PROGRAMS = {
    "one norm of the batch, in a helper": _HEAD
    + """
D = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
opt = torch.optim.Adam(D.parameters(), 1e-3)
def penalty(real, fake):
    a = torch.rand(len(real), 1)
    mix = (a * real + (1 - a) * fake).requires_grad_()
    g = torch.autograd.grad(D(mix).sum(), mix, create_graph=True)[0]
    return (g.norm() - 1) ** 2  # <- BP819
for _ in range(3):
    real, fake = torch.randn(8, 2), torch.randn(8, 2) * 2
    loss = D(fake).mean() - D(real).mean() + 10 * penalty(real, fake)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a root of a sum over the channels": _HEAD
    + """
class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(72, 1))
    def forward(self, x):
        return self.main(x).squeeze(1)
D = Critic()
opt = torch.optim.Adam(D.parameters(), 1e-3)
for _ in range(3):
    x = torch.randn(4, 3, 8, 8, requires_grad=True)
    out = D(x)
    grads, = torch.autograd.grad(out, x, torch.ones_like(out), create_graph=True, retain_graph=True)
    slopes = torch.sqrt(grads.pow(2).sum(dim=1) + 1e-12)  # <- BP819
    gp = ((slopes - 1.0) ** 2).mean()
    opt.zero_grad()
    (out.mean() + gp).backward()
    opt.step()
""",
    "right: one norm per sample, flat or over all other dimensions": _HEAD
    + """
D = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(72, 1))
opt = torch.optim.Adam(D.parameters(), 1e-3)
for i in range(4):
    x = torch.randn(4, 3, 8, 8, requires_grad=True)
    g, = torch.autograd.grad(D(x).sum(), x, create_graph=True)
    n = g.view(len(x), -1).norm(2, 1) if i % 2 else torch.sqrt(g.pow(2).sum(dim=(1, 2, 3)) + 1e-12)
    opt.zero_grad()
    ((n - 1) ** 2).mean().backward()
    opt.step()
""",
    "right: a score for each patch": _HEAD
    + """
D = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.LeakyReLU(0.2), nn.Conv2d(8, 1, 1))
opt = torch.optim.Adam(D.parameters(), 1e-3)
for i in range(3):
    x = torch.randn(4, 3, 8, 8, requires_grad=True)
    g, = torch.autograd.grad(D(x).sum(), x, create_graph=True)
    opt.zero_grad()
    ((g.norm(2, dim=1) - 1) ** 2).mean().backward()
    opt.step()
""",
    "right: forces on the atoms of several molecules": """
import torch
from torch import nn

torch.manual_seed(0)


class Energy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, x):
        return self.net(x).sum((1, 2))


model = Energy()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(4):
    positions = torch.randn(4, 6, 3, requires_grad=True)
    energy = model(positions)
    (force,) = torch.autograd.grad(energy.sum(), positions, create_graph=True)
    loss = (force.norm(dim=-1) - 1.0).pow(2).mean() + energy.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}
