import torch
from torch import nn

torch.manual_seed(0)
energy = nn.Sequential(nn.Linear(2, 32), nn.SiLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(energy.parameters(), lr=1e-3)
buffer = torch.randn(64, 2)


def langevin(x, steps=5):
    energy.requires_grad_(False)
    for _ in range(steps):
        x = x.detach().requires_grad_()
        (g,) = torch.autograd.grad(energy(x).sum(), x)
        x = x - 0.1 * g + 0.05 * torch.randn_like(x)
    energy.requires_grad_(True)
    return x.detach()


for step in range(6):
    picked = torch.randint(0, 64, (32,))
    fake = langevin(buffer[picked])
    buffer[picked] = fake
    real = torch.randn(32, 2) + 2
    up, down = energy(real), energy(fake)
    loss = up.mean() - down.mean() + 0.1 * (up.square().mean() + down.square().mean())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
