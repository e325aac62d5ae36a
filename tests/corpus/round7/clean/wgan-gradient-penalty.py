import torch
import torch.nn as nn


class Critic(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, x):
        return self.net(x).squeeze(1)


def slope_penalty(critic, a, b):
    t = torch.rand(len(a), 1)
    point = torch.lerp(a, b, t).detach().requires_grad_()
    grad, = torch.autograd.grad(critic(point).sum(), point, create_graph=True)
    return (grad.norm(dim=1) - 1).pow(2).mean()


torch.manual_seed(101)
critic, gen = Critic(), nn.Sequential(nn.Linear(2, 24), nn.ReLU(), nn.Linear(24, 2))
c_opt = torch.optim.Adam(critic.parameters(), 1e-3, betas=(0.0, 0.9))
g_opt = torch.optim.Adam(gen.parameters(), 1e-3, betas=(0.0, 0.9))
for it in range(4):
    for _ in range(3):
        real = torch.randn(32, 2) + 2
        fake = gen(torch.randn(32, 2)).detach()
        c_loss = critic(fake).mean() - critic(real).mean() + 10 * slope_penalty(critic, real, fake)
        c_opt.zero_grad()
        c_loss.backward()
        c_opt.step()
    g_opt.zero_grad()
    g_loss = -critic(gen(torch.randn(32, 2))).mean()
    g_loss.backward()
    g_opt.step()
    print(it, c_loss.item(), g_loss.item())
