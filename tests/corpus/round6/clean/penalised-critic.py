import torch
import torch.nn as nn

torch.manual_seed(10)
critic = nn.Sequential(nn.Linear(2, 32), nn.Softplus(), nn.Linear(32, 1))
gen = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 2))
oc = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.0, 0.9))
og = torch.optim.Adam(gen.parameters(), lr=1e-3, betas=(0.0, 0.9))


def penalty(a, b):
    t = torch.rand(len(a), 1)
    m = torch.lerp(a, b, t).requires_grad_()
    g = torch.autograd.grad(critic(m).sum(), m, create_graph=True)[0]
    return ((g.pow(2).sum(1) + 1e-12).sqrt() - 1).pow(2).mean()


for it in range(10):
    real = torch.randn(64, 2) * 0.2 + 1
    with torch.no_grad():
        fake = gen(torch.randn(64, 3))
    oc.zero_grad()
    lc = critic(fake).mean() - critic(real).mean() + 10 * penalty(real, fake)
    lc.backward()
    oc.step()
    if it % 3 == 2:
        og.zero_grad()
        lg = -critic(gen(torch.randn(64, 3))).mean()
        lg.backward()
        og.step()
print(lc.item(), lg.item())
