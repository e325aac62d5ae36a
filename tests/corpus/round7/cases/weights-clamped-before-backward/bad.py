import torch
import torch.nn as nn

torch.manual_seed(46)
critic = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 1))
generator = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 3))
opt_c = torch.optim.RMSprop(critic.parameters(), lr=5e-3)
opt_g = torch.optim.RMSprop(generator.parameters(), lr=5e-4)
clip = 0.05


def clamp_weights(net):
    for p in net.parameters():
        p.data.clamp_(-clip, clip)


def sample(n):
    return torch.randn(n, 3) * torch.tensor([1.0, 0.2, 0.5]) + 1


for it in range(5):
    for _ in range(3):
        real, fake = sample(32), generator(torch.randn(32, 2)).detach()
        opt_c.zero_grad()
        loss_c = critic(fake).mean() - critic(real).mean()
        clamp_weights(critic)
        loss_c.backward()
        opt_c.step()
    opt_g.zero_grad()
    loss_g = -critic(generator(torch.randn(32, 2))).mean()
    loss_g.backward()
    opt_g.step()
    print(it, loss_c.item(), loss_g.item())
