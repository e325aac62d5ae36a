"""BP841 divergence-rewarded."""

PROGRAMS = {
    "a helper adds half of the sum": """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(12)
class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.mu, self.lv, self.dec = nn.Linear(12, 16), nn.Linear(16, 3), nn.Linear(16, 3), nn.Linear(3, 12)
    def forward(self, x):
        h = torch.relu(self.enc(x)); mu, lv = self.mu(h), self.lv(h)
        z = mu + torch.randn_like(mu) * (0.5 * lv).exp()
        return self.dec(z), mu, lv
def elbo(x, out, mu, lv):
    rec = F.mse_loss(out, x, reduction='sum') / len(x)
    kl = 0.5 * (1 + lv - mu.pow(2) - lv.exp()).sum(1).mean()  # <- BP841
    return rec + kl
v = VAE(); opt = torch.optim.Adam(v.parameters(), 1e-3)
for _ in range(8):
    x = torch.randn(16, 12); loss = elbo(x, *v(x))
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "right: a helper adds half of the sum": """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(12)
class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.mu, self.lv, self.dec = nn.Linear(12, 16), nn.Linear(16, 3), nn.Linear(16, 3), nn.Linear(3, 12)
    def forward(self, x):
        h = torch.relu(self.enc(x)); mu, lv = self.mu(h), self.lv(h)
        z = mu + torch.randn_like(mu) * (0.5 * lv).exp()
        return self.dec(z), mu, lv
def elbo(x, out, mu, lv):
    rec = F.mse_loss(out, x, reduction='sum') / len(x)
    kl = -0.5 * (1 + lv - mu.pow(2) - lv.exp()).sum(1).mean()
    return rec + kl
v = VAE(); opt = torch.optim.Adam(v.parameters(), 1e-3)
for _ in range(8):
    x = torch.randn(16, 12); loss = elbo(x, *v(x))
    opt.zero_grad(); loss.backward(); opt.step()
""",
}
