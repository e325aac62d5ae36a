import torch
from torch import nn

torch.manual_seed(33)
energy = nn.Sequential(nn.Linear(2, 32), nn.SiLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(energy.parameters(), lr=1e-3)
buffer = torch.randn(200, 2)


def langevin(start, steps=8, size=0.05):
    energy.requires_grad_(False)
    x = start.clone()
    for _ in range(steps):
        x.requires_grad_(True)
        grad = torch.autograd.grad(energy(x).sum(), x)[0]
        x = (x.detach() - size * grad + 0.02 * torch.randn_like(x)).clamp(-3, 3)
    energy.requires_grad_(True)
    return x


for step in range(8):
    data = torch.randn(32, 2) * 0.3 + torch.tensor([1.0, -1.0])
    idx = torch.randint(0, 200, (32,))
    samples = langevin(buffer[idx])
    buffer[idx] = samples
    plus, minus = energy(data), energy(samples)
    loss = plus.mean() - minus.mean() + 0.1 * (plus.square() + minus.square()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
