import torch
from torch import nn

torch.manual_seed(4)
G = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 5))
C = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
g_opt = torch.optim.SGD(G.parameters(), lr=1e-5)
c_opt = torch.optim.SGD(C.parameters(), lr=1e-5)

for it in range(5):
    g_opt.zero_grad()
    c_opt.zero_grad()
    real = torch.randn(24, 5)
    fake = G(torch.randn(24, 3))
    c_loss = C(fake.detach()).mean() - C(real).mean()
    c_loss.backward(retain_graph=True)
    c_opt.step()
    g_loss = -C(G(torch.randn(24, 3))).mean()
    alone = torch.autograd.grad(g_loss, G[0].weight, retain_graph=True)[0]
    g_loss.backward()
    seen = G[0].weight.grad.clone()
    g_opt.step()
print(c_loss.item(), g_loss.item())
