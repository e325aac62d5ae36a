"""BP842 log-variance-as-deviation."""

PROGRAMS = {
    "drawn in a helper": """
import torch
from torch import nn
torch.manual_seed(13)
class Encoder(nn.Module):
    def __init__(self): super().__init__(); self.net = nn.Sequential(nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 4))
    def forward(self, x): return self.net(x).chunk(2, dim=-1)
enc, dec = Encoder(), nn.Linear(2, 8)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], 1e-3)
def sample(mu, logvar):
    std = torch.exp(logvar)
    return mu + std * torch.randn_like(std)
def kl(mu, logvar):
    return (-0.5 * (1 + logvar - mu ** 2 - logvar.exp())).sum(-1).mean()  # <- BP842
for _ in range(8):
    x = torch.randn(16, 8)
    mu, lv = enc(x)
    loss = ((dec(sample(mu, lv)) - x) ** 2).sum(-1).mean() + kl(mu, lv)
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "right: drawn in a helper": """
import torch
from torch import nn
torch.manual_seed(13)
class Encoder(nn.Module):
    def __init__(self): super().__init__(); self.net = nn.Sequential(nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 4))
    def forward(self, x): return self.net(x).chunk(2, dim=-1)
enc, dec = Encoder(), nn.Linear(2, 8)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], 1e-3)
def sample(mu, logvar):
    std = torch.exp(0.5 * logvar)
    return mu + std * torch.randn_like(std)
def kl(mu, logvar):
    return (-0.5 * (1 + logvar - mu ** 2 - logvar.exp())).sum(-1).mean()
for _ in range(8):
    x = torch.randn(16, 8)
    mu, lv = enc(x)
    loss = ((dec(sample(mu, lv)) - x) ** 2).sum(-1).mean() + kl(mu, lv)
    opt.zero_grad(); loss.backward(); opt.step()
""",
}
