import torch
from torch import nn

torch.manual_seed(5)


class Gan:
    def __init__(self):
        self.g = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 12), nn.Tanh())
        self.d = nn.Sequential(nn.Linear(12, 24), nn.LeakyReLU(0.2), nn.Linear(24, 1))
        self.og = torch.optim.Adam(self.g.parameters(), 2e-4, betas=(0.5, 0.999))
        self.od = torch.optim.Adam(self.d.parameters(), 2e-4, betas=(0.5, 0.999))
        self.bce = nn.BCEWithLogitsLoss()

    def step(self, real):
        fake = self.g(torch.randn(len(real), 8))
        ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
        # discriminator: old gradients away first
        self.od.zero_grad()
        d_loss = self.bce(self.d(real), ones) + self.bce(self.d(fake.detach()), zeros)
        d_loss.backward()
        self.od.step()
        # generator, through the new discriminator and the same fakes
        self.og.zero_grad()
        g_loss = self.bce(self.d(fake), ones)
        g_loss.backward()
        self.og.step()
        return d_loss.item(), g_loss.item()


gan = Gan()
for it in range(8):
    print(it, gan.step(torch.tanh(torch.randn(16, 12) + 0.5)))
