import torch
import torch.nn as nn
import torch.nn.functional as F


class VAE(nn.Module):
    def __init__(self, n=12, z=3):
        super().__init__()
        self.enc, self.dec = nn.Linear(n, 2 * z), nn.Linear(z, n)

    def elbo(self, x):
        mu, logvar = self.enc(x).chunk(2, 1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        log_px = -F.binary_cross_entropy_with_logits(self.dec(z), x, reduction="none").sum(1)
        kl = 0.5 * (logvar.exp() + mu.pow(2) - 1 - logvar).sum(1)
        return (log_px - kl).mean()


torch.manual_seed(38)
vae = VAE()
opt = torch.optim.Adam(vae.parameters(), lr=1e-2, maximize=True)
proto = (torch.rand(4, 12) < 0.5).float()
x = proto[torch.randint(0, 4, (100,))]
for it in range(25):
    bound = vae.elbo(x)
    opt.zero_grad()
    bound.backward()
    opt.step()
print(bound.item())
