"""BP509 saturated-activation."""

RAW = """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
pixels = torch.randint(0, 256, (16, 64)).float()
for _ in range({turns}):
    x = {x}
    out = net(x){mark}
    loss = {loss}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

SHAPES = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
"""

PROGRAMS = {
    "raw pixels": RAW.format(turns=4, x="pixels", mark="  # <- BP509", loss="out.pow(2).mean()"),
    "scaled pixels": RAW.format(turns=4, x="pixels / 255 - 0.5", mark="", loss="out.pow(2).mean()"),
    "twice is no pattern": RAW.format(turns=2, x="pixels", mark="", loss="out.pow(2).mean()"),
    "most elements get no gradient": RAW.format(turns=4, x="pixels / 255", mark="", loss="out[:1].pow(2).mean()"),
    "VAE encoder scaled through data": SHAPES
    + """
class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.stats, self.dec = nn.Linear(10, 24), nn.Linear(24, 4), nn.Linear(2, 10)

    def forward(self, x):
        mu, logvar = self.stats(torch.sigmoid(self.enc(x))).chunk(2, 1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.dec(z), mu, logvar

vae = VAE()
vae.enc.weight.data.mul_(400)  # <- BP509
opt = torch.optim.Adam(vae.parameters(), lr=1e-3)
for _ in range(6):
    x = torch.randn(32, 10)
    out, mu, logvar = vae(x)
    loss = F.mse_loss(out, x) + 0.1 * (mu.pow(2) + logvar.exp() - logvar - 1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "PINN with a normal init of deviation 50": SHAPES
    + """
def build(width):
    layers = [nn.Linear(1, width), nn.Tanh(), nn.Linear(width, 1)]
    for layer in layers:
        if isinstance(layer, nn.Linear):
            torch.nn.init.normal_(layer.weight, std=500.0)  # <- BP509
    return nn.Sequential(*layers)

u = build(32)
opt = torch.optim.Adam(u.parameters(), lr=1e-3)
for _ in range(5):
    t = torch.rand(64, 1)
    loss = (u(t) - t.sin()).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}
