import torch
import torch.nn as nn


class Equilibrium(nn.Module):
    def __init__(self, dim, iterations=15):
        super().__init__()
        self.recur, self.inject, self.iterations = nn.Linear(dim, dim), nn.Linear(dim, dim), iterations
        nn.init.orthogonal_(self.recur.weight, gain=0.5)

    def cell(self, z, x):
        return torch.tanh(self.recur(z) + self.inject(x))

    def forward(self, x):
        with torch.no_grad():
            z = torch.zeros_like(x)
            for _ in range(self.iterations):
                z = self.cell(z, x)
        z = self.cell(z, x)
        if self.training:
            z0 = z.detach().requires_grad_()
            f0 = self.cell(z0, x.detach())

            def implicit(grad):
                g = grad
                for _ in range(10):
                    g = torch.autograd.grad(f0, z0, g, retain_graph=True)[0] + grad
                return g

            z.register_hook(implicit)
        return z


torch.manual_seed(138)
model = nn.Sequential(nn.Linear(4, 10), Equilibrium(10), nn.Linear(10, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
x = torch.randn(50, 4)
y = x.prod(dim=1, keepdim=True)
for step in range(12):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
print(loss.item())
