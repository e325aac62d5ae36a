import torch
from torch import nn

torch.manual_seed(32)
G, C = nn.Linear(4, 3), nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
g_opt = torch.optim.RMSprop(G.parameters(), lr=1e-3)
c_opt = torch.optim.RMSprop(C.parameters(), lr=1e-3)
for _ in range(8):
    fake = G(torch.randn(16, 4))
    g_opt.zero_grad()
    (-C(fake).mean()).backward(inputs=list(G.parameters()))
    g_opt.step()
    c_opt.zero_grad()
    (C(fake.detach()).mean() - C(torch.randn(16, 3)).mean()).backward()
    c_opt.step()
    with torch.no_grad():
        for p in C.parameters():
            p.clamp_(-0.1, 0.1)
