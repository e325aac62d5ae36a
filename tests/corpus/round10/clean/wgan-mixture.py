import torch
from torch import nn


class Critic(nn.Module):
    def __init__(self, dim=2, width=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


def gradient_penalty(critic, real, fake):
    mix = torch.rand(len(real), 1)
    between = (mix * real + (1 - mix) * fake).requires_grad_(True)
    (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return (slope.norm(dim=1) - 1).square().mean()


def mixture(n):
    centre = torch.tensor([[2.0, 0.0], [-1.0, 1.7], [-1.0, -1.7]])[torch.randint(3, (n,))]
    return centre + 0.2 * torch.randn(n, 2)


class WGAN:
    def __init__(self, latent=3, lr=5e-3, n_critic=3, weight=5.0):
        self.latent, self.n_critic, self.weight = latent, n_critic, weight
        self.generator = nn.Sequential(nn.Linear(latent, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 2))
        self.critic = Critic()
        self.g_opt = torch.optim.Adam(self.generator.parameters(), lr=lr, betas=(0.0, 0.9))
        self.c_opt = torch.optim.Adam(self.critic.parameters(), lr=lr, betas=(0.0, 0.9))

    def fake(self, n):
        return self.generator(torch.randn(n, self.latent))

    def critic_step(self, real):
        fake = self.fake(len(real)).detach()
        distance = self.critic(real).mean() - self.critic(fake).mean()
        loss = self.weight * gradient_penalty(self.critic, real, fake) - distance
        self.c_opt.zero_grad()
        loss.backward()
        self.c_opt.step()
        return distance.item()

    def generator_step(self, n):
        loss = -self.critic(self.fake(n)).mean()
        self.g_opt.zero_grad()
        loss.backward()
        self.g_opt.step()

    def round(self, batch):
        distances = [self.critic_step(mixture(batch)) for _ in range(self.n_critic)]
        self.generator_step(batch)
        return distances[-1]


torch.manual_seed(71)
gan = WGAN()
distances = [gan.round(96) for _ in range(110)]
print("largest", max(distances), "last", sum(distances[-10:]) / 10)
print("spread", gan.fake(256).detach().std(0).tolist())
