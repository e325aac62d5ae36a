import torch
from torch import nn

torch.manual_seed(41)
phi = nn.Sequential(nn.Linear(1, 16), nn.ELU(), nn.Linear(16, 16))
rho = nn.Sequential(nn.ELU(), nn.Linear(16, 1))
opt = torch.optim.Adam([*phi.parameters(), *rho.parameters()], lr=3e-3)
for epoch in range(6):
    spread = torch.rand(20) + 0.2
    sets = torch.randn(20, 15, 1) * spread.view(-1, 1, 1)
    pred = rho(phi(sets).mean(1)).squeeze(-1)
    loss = (pred - spread.log()).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
