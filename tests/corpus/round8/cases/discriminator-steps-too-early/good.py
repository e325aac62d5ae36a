import torch
import torch.nn as nn


class Gan:
    def __init__(self, noise=6, width=24, lr=1e-3):
        self.noise = noise
        self.generator = nn.Sequential(nn.Linear(noise, width), nn.ReLU(), nn.Linear(width, 8))
        self.discriminator = nn.Sequential(nn.Linear(8, width), nn.LeakyReLU(0.2), nn.Linear(width, 1))
        self.g_opt = torch.optim.Adam(self.generator.parameters(), lr=lr, betas=(0.5, 0.99))
        self.d_opt = torch.optim.Adam(self.discriminator.parameters(), lr=lr, betas=(0.5, 0.99))

    def hinge(self, on_real, on_fake):
        return (1 - on_real).relu().mean() + (1 + on_fake).relu().mean()

    def train_step(self, real):
        fake = self.generator(torch.randn(len(real), self.noise))
        on_real = self.discriminator(real)
        on_fake = self.discriminator(fake)
        d_loss = self.hinge(on_real, on_fake)
        self.d_opt.zero_grad()
        d_loss.backward(retain_graph=True)
        self.d_opt.step()

        g_loss = -self.discriminator(fake).mean()
        self.g_opt.zero_grad()
        g_loss.backward()
        self.g_opt.step()
        return d_loss.item(), g_loss.item()


def curves(n):
    t = torch.linspace(0, 1, 8)
    return torch.sin(6.28 * (t + torch.rand(n, 1))) * (0.5 + torch.rand(n, 1))


torch.manual_seed(44)
gan = Gan()
for iteration in range(12):
    report = gan.train_step(curves(32))
    if iteration % 4 == 0:
        print(iteration, *report)
