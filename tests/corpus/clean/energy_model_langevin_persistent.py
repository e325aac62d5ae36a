import torch
from torch import nn

torch.manual_seed(0)
energy = nn.Sequential(nn.Linear(2, 32), nn.SiLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(energy.parameters(), lr=1e-3, betas=(0.0, 0.999))
buffer = torch.rand(200, 2) * 4 - 2


def requires(flag):
    for p in energy.parameters():
        p.requires_grad_(flag)


def langevin(x, steps=8, step=0.05, noise=0.02):
    x = x.clone().detach().requires_grad_(True)
    for _ in range(steps):
        e = energy(x).sum()
        e.backward()
        x.data.add_(-step * x.grad + noise * torch.randn_like(x))
        x.data.clamp_(-3, 3)
        x.grad.detach_()
        x.grad.zero_()
    return x.detach()


for it in range(8):
    pos = torch.randn(32, 2) * 0.3 + 1
    idx = torch.randint(0, 200, (32,))
    start = torch.where(torch.rand(32, 1) < 0.05, torch.rand(32, 2) * 4 - 2, buffer[idx])
    requires(False)
    energy.eval()
    neg = langevin(start)
    buffer[idx] = neg
    energy.train()
    requires(True)
    e_pos, e_neg = energy(pos), energy(neg)
    loss = e_pos.mean() - e_neg.mean() + 0.1 * (e_pos.pow(2) + e_neg.pow(2)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(it, loss.item(), e_pos.mean().item(), e_neg.mean().item())
