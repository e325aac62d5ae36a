import torch
from torch import nn
import torch.nn.functional as F


def set_grad(module, on):
    for parameter in module.parameters():
        parameter.requires_grad_(on)


class Discriminator(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.first, self.second, self.out = nn.Linear(2, width), nn.Linear(width, width), nn.Linear(width, 1)

    def forward(self, x):
        h = F.softplus(self.first(x))
        return self.out(F.softplus(self.second(h)) + h).squeeze(1)


def r1(discriminator, real):
    real = real.detach().clone().requires_grad_(True)
    slope, = torch.autograd.grad(discriminator(real).sum(), real, create_graph=True)
    return slope.square().sum(1).mean()


class Players:
    def __init__(self, every=4, gamma=1.0):
        self.generator = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 2))
        self.discriminator = Discriminator()
        self.generator_opt = torch.optim.Adam(self.generator.parameters(), lr=2e-3, betas=(0.0, 0.99))
        self.discriminator_opt = torch.optim.Adam(self.discriminator.parameters(), lr=2e-3, betas=(0.0, 0.99))
        self.every, self.gamma = every, gamma

    def optimise(self, optimizer, loss):
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.item()

    def turn(self, step, real):
        set_grad(self.discriminator, True)
        with torch.no_grad():
            fake = self.generator(torch.randn(len(real), 3))
        loss = F.softplus(self.discriminator(fake)).mean() + F.softplus(-self.discriminator(real)).mean()
        report = [self.optimise(self.discriminator_opt, loss)]
        if step % self.every == 0:
            self.optimise(self.discriminator_opt, 0.5 * self.gamma * self.every * r1(self.discriminator, real))
        set_grad(self.discriminator, False)
        fake = self.generator(torch.randn(len(real), 3))
        report.append(self.optimise(self.generator_opt, F.softplus(-self.discriminator(fake)).mean()))
        return report


torch.manual_seed(109)
players = Players()
for step in range(10):
    real = torch.randn(64, 2) * torch.tensor([0.2, 0.8]) + torch.tensor([1.0, 0.0])
    report = players.turn(step, real)
print("discriminator {:.3f} generator {:.3f}".format(*report))
