"""BP848 noise-drawn-again."""

PROGRAMS = {
    "a sampler that draws where it is given nothing": """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(23)
T = 50; betas = torch.linspace(1e-4, 0.02, T); abar = (1 - betas).cumprod(0)
class Eps(nn.Module):
    def __init__(self): super().__init__(); self.t, self.net = nn.Embedding(T, 8), nn.Sequential(nn.Linear(10, 32), nn.SiLU(), nn.Linear(32, 2))
    def forward(self, x, t): return self.net(torch.cat([x, self.t(t)], -1))
def q_sample(x0, t, noise=None):
    if noise is None: noise = torch.randn_like(x0)
    return abar[t, None].sqrt() * x0 + (1 - abar[t, None]).sqrt() * noise
net = Eps(); opt = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(8):
    x0, t = torch.randn(32, 2), torch.randint(0, T, (32,))
    noise = torch.randn_like(x0)
    xt = q_sample(x0, t)  # <- BP848
    loss = F.mse_loss(net(xt, t), noise)
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "right: a sampler that draws where it is given nothing": """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(23)
T = 50; betas = torch.linspace(1e-4, 0.02, T); abar = (1 - betas).cumprod(0)
class Eps(nn.Module):
    def __init__(self): super().__init__(); self.t, self.net = nn.Embedding(T, 8), nn.Sequential(nn.Linear(10, 32), nn.SiLU(), nn.Linear(32, 2))
    def forward(self, x, t): return self.net(torch.cat([x, self.t(t)], -1))
def q_sample(x0, t, noise=None):
    if noise is None: noise = torch.randn_like(x0)
    return abar[t, None].sqrt() * x0 + (1 - abar[t, None]).sqrt() * noise
net = Eps(); opt = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(8):
    x0, t = torch.randn(32, 2), torch.randint(0, T, (32,))
    noise = torch.randn_like(x0)
    xt = q_sample(x0, t, noise)
    loss = F.mse_loss(net(xt, t), noise)
    opt.zero_grad(); loss.backward(); opt.step()
""",
}
