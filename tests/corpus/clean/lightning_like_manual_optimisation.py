import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class AdversarialAutoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = nn.Linear(12, 3), nn.Linear(3, 12)
        self.disc = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))

    def configure_optimizers(self):
        return (
            torch.optim.Adam([*self.enc.parameters(), *self.dec.parameters()], lr=2e-3),
            torch.optim.Adam(self.disc.parameters(), lr=1e-3),
            torch.optim.Adam(self.enc.parameters(), lr=5e-4),
        )

    def training_step(self, x, opts):
        ae, d, g = opts
        # reconstruction
        rec = F.mse_loss(self.dec(self.enc(x)), x)
        ae.zero_grad()
        rec.backward()
        ae.step()
        # discriminator on the code
        with torch.no_grad():
            code = self.enc(x)
        prior = torch.randn_like(code)
        d_loss = F.softplus(-self.disc(prior)).mean() + F.softplus(self.disc(code)).mean()
        d.zero_grad()
        d_loss.backward()
        d.step()
        # fool it
        g_loss = F.softplus(-self.disc(self.enc(x))).mean()
        g.zero_grad()
        g_loss.backward()
        g.step()
        return {"rec": rec.item(), "d": d_loss.item(), "g": g_loss.item()}


module = AdversarialAutoencoder()
opts = module.configure_optimizers()
for step in range(6):
    print(step, module.training_step(torch.randn(32, 12), opts))
