import torch
from torch import nn


class Equilibrium(nn.Module):
    def __init__(self, cell, tol=1e-4, limit=30):
        super().__init__()
        self.cell, self.tol, self.limit = cell, tol, limit

    def solve(self, f, z):
        for _ in range(self.limit):
            following = f(z)
            if (following - z).norm() < self.tol:
                return following
            z = following
        return z

    def forward(self, x):
        with torch.no_grad():
            z = self.solve(lambda z: self.cell(z, x), torch.zeros_like(x))
        z = self.cell(z, x)
        z0 = z.clone().detach().requires_grad_()
        f0 = self.cell(z0, x)

        def backward_hook(grad):
            return self.solve(lambda y: torch.autograd.grad(f0, z0, y, retain_graph=True)[0] + grad, grad)

        if z.requires_grad:
            z.register_hook(backward_hook)
        return z


class Cell(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner, self.norm = nn.Linear(width, width), nn.LayerNorm(width)
        nn.init.normal_(self.inner.weight, std=0.05)

    def forward(self, z, x):
        return torch.tanh(self.norm(self.inner(z) + x))


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 6), Equilibrium(Cell(6)), nn.Linear(6, 2))
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(4):
    x = torch.randn(10, 4)
    loss = nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
model.eval()
with torch.no_grad():
    print(model(torch.randn(3, 4)).argmax(-1))
