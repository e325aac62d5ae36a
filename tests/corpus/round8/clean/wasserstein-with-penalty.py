import torch
import torch.nn as nn

torch.manual_seed(8)
generator = nn.Sequential(nn.Linear(2, 24), nn.ReLU(), nn.Linear(24, 1))
critic = nn.Sequential(nn.Linear(1, 24), nn.Softplus(), nn.Linear(24, 1))
g_opt = torch.optim.Adam(generator.parameters(), lr=1e-3)
c_opt = torch.optim.Adam(critic.parameters(), lr=2e-3)


def real_batch(n):
    return torch.randn(n, 1) * 0.3 + torch.randint(0, 2, (n, 1)) * 2.0


def penalty(real, fake):
    share = torch.rand(len(real), 1)
    point = torch.lerp(real, fake, share).requires_grad_(True)
    slope = torch.autograd.grad(critic(point).sum(), point, create_graph=True)[0]
    return (slope.norm(2, dim=1) - 1).pow(2).mean()


for iteration in range(6):
    for _ in range(3):
        real, fake = real_batch(32), generator(torch.randn(32, 2)).detach()
        loss = critic(fake).mean() - critic(real).mean() + 5.0 * penalty(real, fake)
        c_opt.zero_grad(set_to_none=True)
        loss.backward()
        c_opt.step()
    g_loss = -critic(generator(torch.randn(32, 2))).mean()
    g_opt.zero_grad(set_to_none=True)
    g_loss.backward()
    g_opt.step()
    print(iteration, loss.item(), g_loss.item())
