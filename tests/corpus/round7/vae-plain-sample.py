# /// case
# title = "The latent of a VAE is drawn by sample()"
# category = "graph-break"
# kind = "sample-without-reparameterization"
# kinds_also_ok = ["graph-break", "detached-sample"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["sample", "posterior"]
# symptom = "the reconstruction sends no gradient to the encoder, the KL term alone does"
# symptom_check = "not latent.requires_grad"
# cause = "sample() draws under no_grad"
# fix = "rsample"
# ///
import torch
import torch.nn as nn
import torch.distributions as D


class GaussianVAE(nn.Module):
    def __init__(self, n_in=10, n_latent=3, width=24):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(n_in, width), nn.ReLU(), nn.Linear(width, 2 * n_latent))
        self.dec = nn.Sequential(nn.Linear(n_latent, width), nn.ReLU(), nn.Linear(width, n_in))

    def posterior(self, x):
        mean, log_scale = self.enc(x).chunk(2, dim=-1)
        return D.Normal(mean, log_scale.clamp(-5, 2).exp())

    def elbo(self, x):
        q = self.posterior(x)
        z = q.sample()  #- here
#+         z = q.rsample()
        likelihood = D.Normal(self.dec(z), 0.5).log_prob(x).sum(-1)  #! also
        kl = D.kl_divergence(q, D.Normal(0.0, 1.0)).sum(-1)
        return (likelihood - kl).mean(), z


torch.manual_seed(6)
factors = torch.randn(80, 3)
observed = factors @ torch.randn(3, 10) + 0.1 * torch.randn(80, 10)
vae = GaussianVAE()
optimizer = torch.optim.Adam(vae.parameters(), lr=4e-3)
step = 0
while step < 15:
    for batch in torch.split(observed, 20):
        bound, latent = vae.elbo(batch)
        optimizer.zero_grad()
        (-bound).backward()
        optimizer.step()
        step += 1
        if step % 5 == 0:
            print(step, bound.item())
