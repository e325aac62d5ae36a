import torch
from torch import nn


class VAE(nn.Module):
    def __init__(self, d=8, h=16, z=3):
        super().__init__()
        self.enc, self.dec = nn.Linear(d, h), nn.Sequential(nn.Linear(z, h), nn.ReLU(), nn.Linear(h, d))
        self.mu, self.logvar = nn.Linear(h, z), nn.Linear(h, z)

    def forward(self, x):
        h = torch.relu(self.enc(x))
        mu, logvar = self.mu(h), self.logvar(h).clamp(-10, 10)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        kl = 0.5 * (mu.pow(2) + logvar.exp() - 1 - logvar).sum(1).mean()
        return nn.functional.mse_loss(self.dec(z), x, reduction="none").sum(1).mean() + kl


torch.manual_seed(47)
model = VAE()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(6):
    loss = model(torch.randn(24, 8))
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
