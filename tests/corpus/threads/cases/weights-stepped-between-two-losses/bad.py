import torch
from torch import nn

torch.manual_seed(9)
G = nn.Linear(4, 6)
D = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
opt_g = torch.optim.SGD(G.parameters(), lr=0.01)
opt_d = torch.optim.SGD(D.parameters(), lr=0.01)


def iteration(real, z):
    fake = G(z)
    g_loss = -D(fake).mean()
    d_loss = D(fake.detach()).mean() - D(real).mean()
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()


for _ in range(3):
    iteration(torch.randn(8, 6), torch.randn(8, 4))
