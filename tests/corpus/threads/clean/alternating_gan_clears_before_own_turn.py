import torch
from torch import nn

torch.manual_seed(31)
G = nn.Sequential(nn.Linear(3, 12), nn.ReLU(), nn.Linear(12, 2))
D = nn.Sequential(nn.Linear(2, 12), nn.LeakyReLU(0.2), nn.Linear(12, 1))
g_opt, d_opt = (torch.optim.Adam(m.parameters(), lr=1e-3, betas=(0.5, 0.99)) for m in (G, D))
bce = nn.BCEWithLogitsLoss()
for _ in range(8):
    real, z = torch.randn(16, 2) + 2, torch.randn(16, 3)
    fake = G(z)
    d_opt.zero_grad()
    (bce(D(real), torch.ones(16, 1)) + bce(D(fake.detach()), torch.zeros(16, 1))).backward()
    d_opt.step()
    g_opt.zero_grad()
    bce(D(fake), torch.ones(16, 1)).backward()
    g_opt.step()
