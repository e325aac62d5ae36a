from contextlib import contextmanager

import torch
from torch import nn


class Generator(nn.Module):
    def __init__(self, noise=4, hidden=32):
        super().__init__()
        self.noise = noise
        self.net = nn.Sequential(nn.Linear(noise, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 2))

    def forward(self, count):
        return self.net(torch.randn(count, self.noise))


class Critic(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, 1))

    def forward(self, x):
        return self.net(x).squeeze(1)


@contextmanager
def frozen(module):
    flags = [p.requires_grad for p in module.parameters()]
    module.requires_grad_(False)
    try:
        yield module
    finally:
        for p, flag in zip(module.parameters(), flags):
            p.requires_grad_(flag)


def gradient_penalty(critic, real, fake):
    mix = torch.rand(len(real), 1)
    between = (mix * real + (1 - mix) * fake).requires_grad_()
    slope, = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return (slope.norm(dim=1) - 1).square().mean()


def triangle(count):
    corners = torch.tensor([[0.0, 1.0], [0.87, -0.5], [-0.87, -0.5]])
    return corners[torch.randint(3, (count,))] + 0.08 * torch.randn(count, 2)


class WassersteinTrainer:
    def __init__(self, critic_steps=3, weight=1.0, batch=64):
        self.generator, self.critic = Generator(), Critic()
        self.opt_g = torch.optim.Adam(self.generator.parameters(), lr=2e-3, betas=(0.5, 0.9))
        self.opt_c = torch.optim.Adam(self.critic.parameters(), lr=4e-3, betas=(0.5, 0.9))
        self.critic_steps, self.weight, self.batch = critic_steps, weight, batch

    def train_critic(self):
        real = triangle(self.batch)
        with torch.no_grad():
            fake = self.generator(self.batch)
        gap = self.critic(real).mean() - self.critic(fake).mean()
        self.opt_c.zero_grad()
        (self.weight * gradient_penalty(self.critic, real, fake) - gap).backward()
        self.opt_c.step()
        return gap.item()

    def train_generator(self):
        with frozen(self.critic) as critic:
            loss = -critic(self.generator(self.batch)).mean()
            self.opt_g.zero_grad()
            loss.backward()
            self.opt_g.step()

    def __iter__(self):
        while True:
            gaps = [self.train_critic() for _ in range(self.critic_steps)]
            self.train_generator()
            yield sum(gaps) / len(gaps)


torch.manual_seed(64)
trainer = WassersteinTrainer()
gaps = [gap for gap, _ in zip(trainer, range(90))]
with torch.inference_mode():
    corners = torch.tensor([[0.0, 1.0], [0.87, -0.5], [-0.87, -0.5]])
    distance = torch.cdist(trainer.generator(300), corners).amin(1).mean().item()
print(f"gap {max(gaps):.3f} -> {gaps[-1]:.3f}, mean distance to a corner {distance:.3f}")
