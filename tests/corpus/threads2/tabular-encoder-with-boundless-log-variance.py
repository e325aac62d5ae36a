# /// case
# title = "Log-variance of an encoder is exponentiated without bounds"
# category = "scale"
# kind = "exploding-gradient"
# kinds_also_ok = ["divergence", "nonfinite-gradient", "nonfinite-forward"]
# severity = "warning"
# names = ["logvar", "std", "exp"]
# symptom = "single steps have losses and gradients that are millions of times those of the others"
# symptom_check = "max(losses) > 1e7"
# cause = "the log-variance has no bound"
# fix = "clamp it"
# evidence = [
#     { url = "https://github.com/vanderschaarlab/synthcity/issues/331", title = "Numerical instability in VAE" },
# ]
# ///
import torch
from torch import nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, d_in, hidden, d_latent):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(d_in, hidden), nn.ReLU())
        self.mu_fc, self.logvar_fc = nn.Linear(hidden, d_latent), nn.Linear(hidden, d_latent)

    def forward(self, x):
        h = self.shared(x)
        return self.mu_fc(h), self.logvar_fc(h)  #- here
#+         return self.mu_fc(h), self.logvar_fc(h).clamp(-4, 4)


class TabularVAE(nn.Module):
    def __init__(self, d_in, hidden=32, d_latent=4):
        super().__init__()
        self.encoder = Encoder(d_in, hidden, d_latent)
        self.decoder = nn.Sequential(nn.Linear(d_latent, hidden), nn.ReLU(), nn.Linear(hidden, d_in))

    def reparametrize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)  #! also
        return mu + std * torch.randn_like(std)

    def forward(self, x):
        mu, logvar = self.encoder(x)
        recon = self.decoder(self.reparametrize(mu, logvar))
        kld = -0.5 * torch.mean(torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1))  #! also
        return F.mse_loss(recon, x) + kld


def income_table(rows):
    """Raw columns of very different scale."""
    age, income = torch.randint(18, 90, (rows, 1)).float(), torch.rand(rows, 1).mul(10).exp() / 20
    flags = (torch.rand(rows, 3) < 0.4).float()
    return torch.cat([age, income, flags], 1)


torch.manual_seed(94)
model = TabularVAE(5)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-2)
losses = []
for epoch in range(6):
    for batch in income_table(64).split(16):
        loss = model(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print(max(losses), losses[-1])
