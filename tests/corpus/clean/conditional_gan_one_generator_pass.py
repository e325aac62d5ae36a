import torch
from torch import nn

torch.manual_seed(0)
CLASSES, Z = 3, 5


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.label = nn.Embedding(CLASSES, CLASSES)
        self.net = nn.Sequential(nn.Linear(Z + CLASSES, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, z, y):
        return self.net(torch.cat((self.label(y), z), -1))


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.label = nn.Embedding(CLASSES, CLASSES)
        self.net = nn.Sequential(nn.Linear(2 + CLASSES, 16), nn.LeakyReLU(0.2), nn.Dropout(0.4), nn.Linear(16, 1))

    def forward(self, x, y):
        return self.net(torch.cat((x, self.label(y)), -1))


generator, discriminator = Generator(), Discriminator()
criterion = nn.BCEWithLogitsLoss()
optimizer_G = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
centres = torch.tensor([[0.0, 2.0], [2.0, 0.0], [-2.0, -2.0]])
for epoch in range(6):
    labels = torch.randint(0, CLASSES, (24,))
    real = centres[labels] + 0.1 * torch.randn(24, 2)
    fake_labels = torch.randint(0, CLASSES, (24,))
    fake = generator(torch.randn(24, Z), fake_labels)

    discriminator.zero_grad()
    loss_real = criterion(discriminator(real, labels), torch.full((24, 1), 0.9))
    loss_real.backward()
    loss_fake = criterion(discriminator(fake.detach(), fake_labels), torch.zeros(24, 1))
    loss_fake.backward()
    optimizer_D.step()

    generator.zero_grad()
    loss_G = criterion(discriminator(fake, fake_labels), torch.ones(24, 1))
    loss_G.backward()
    optimizer_G.step()
    D_x, G_z = loss_real.item(), loss_fake.item()
    print("%d  D(x) %.3f D(G(z)) %.3f  G %.3f" % (epoch, D_x, G_z, loss_G.item()))
