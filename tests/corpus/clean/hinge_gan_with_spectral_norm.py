import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm


class Generator(nn.Module):
    def __init__(self, z=4):
        super().__init__()
        self.z = z
        self.body = nn.Sequential(nn.Linear(z, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 2))

    def sample(self, n):
        return self.body(torch.randn(n, self.z))


critic = nn.Sequential(spectral_norm(nn.Linear(2, 32)), nn.LeakyReLU(0.2), spectral_norm(nn.Linear(32, 1)))
torch.manual_seed(0)
generator = Generator()
optimizers = {
    "g": torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.0, 0.9)),
    "d": torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.0, 0.9)),
}
for step in range(6):
    for _ in range(2):
        real = torch.randn(32, 2) * 0.3 + 1
        with torch.no_grad():
            fake = generator.sample(32)
        d_loss = F.relu(1 - critic(real)).mean() + F.relu(1 + critic(fake)).mean()
        optimizers["d"].zero_grad()
        d_loss.backward()
        optimizers["d"].step()
    g_loss = -critic(generator.sample(32)).mean()
    optimizers["g"].zero_grad()
    g_loss.backward()
    optimizers["g"].step()
    print(step, d_loss.item(), g_loss.item())
