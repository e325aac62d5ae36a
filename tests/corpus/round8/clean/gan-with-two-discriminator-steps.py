import torch
import torch.nn as nn
import torch.nn.functional as F


def mlp(inputs, outputs, width=24):
    return nn.Sequential(nn.Linear(inputs, width), nn.LeakyReLU(0.2), nn.Linear(width, outputs))


class Training:
    def __init__(self, noise=3):
        self.noise = noise
        self.g, self.d = mlp(noise, 2), mlp(2, 1)
        self.opt_g = torch.optim.Adam(self.g.parameters(), lr=1e-3, betas=(0.5, 0.9))
        self.opt_d = torch.optim.Adam(self.d.parameters(), lr=2e-3, betas=(0.5, 0.9))

    def fake(self, n):
        return self.g(torch.randn(n, self.noise))

    def discriminator(self, real):
        self.opt_d.zero_grad()
        on_real = F.softplus(-self.d(real)).mean()
        on_real.backward()
        on_fake = F.softplus(self.d(self.fake(len(real)).detach())).mean()
        on_fake.backward()
        self.opt_d.step()
        return (on_real + on_fake).item()

    def generator(self, n):
        loss = F.softplus(-self.d(self.fake(n))).mean()
        self.opt_g.zero_grad()
        loss.backward()
        self.opt_g.step()
        return loss.item()


def ring(n):
    angle = torch.randint(0, 8, (n, 1)) * 0.7854
    return torch.cat([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(n, 2)


torch.manual_seed(3)
training = Training()
for iteration in range(8):
    d_losses = [training.discriminator(ring(48)) for _ in range(2)]
    print(iteration, d_losses[-1], training.generator(48))
