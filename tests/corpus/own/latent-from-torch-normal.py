# /// case
# category = "mode"
# kind = "zero-gradient-op"
# severity = "warning"
# names = ["z"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(8, 2 * 2)
        self.dec = nn.Linear(2, 8)

    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, -1)
        std = torch.exp(0.5 * logvar)
        z = torch.normal(mu, std)  #- here
#+         z = mu + std * torch.randn_like(std)
        return self.dec(z)


vae = Vae()
opt = torch.optim.Adam(vae.parameters(), lr=1e-3)
for _ in range(5):
    x = torch.randn(16, 8)
    loss = nn.functional.mse_loss(vae(x), x)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
