import torch
from torch import nn

torch.manual_seed(34)
G = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 8))
D = nn.Sequential(nn.Linear(8, 24), nn.LeakyReLU(0.2), nn.Linear(24, 1))
opt_g, opt_d = torch.optim.Adam(G.parameters(), 1e-3), torch.optim.Adam(D.parameters(), 1e-3)
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(16, 1), torch.zeros(16, 1)
for step in range(5):
    real, fake = torch.randn(16, 8).cumsum(1), G(torch.randn(16, 4))
    d_loss = bce(D(real), ones) + bce(D(fake.detach()), zeros)
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()
    g_loss = bce(D(fake), ones)
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
print(d_loss.item(), g_loss.item())
