# /// case
# title = "The divergence squares a log-variance"
# category = "loss"
# kind = "wrong-formula"
# kinds_also_ok = ["vae-kl"]
# severity = "warning"
# names = ["logvar", "kl"]
# symptom = "the KL term is not least at the prior"
# symptom_check = "abs(kl_at_prior) > 1e-3 or not abs(grad_at_prior) < 1e-3"
# cause = "logvar is used as if it were a standard deviation"
# fix = "exp(logvar) and logvar"
# evidence = [
#     { url = "https://github.com/deepchem/deepchem/pull/4888", title = "fix: Loss corrections - KL Divergence, Poisson" },
#     { url = "https://github.com/FluxML/model-zoo/pull/147", title = "Another mistake in KL-divergence equation vae.jl" },
# ]
# ///
import torch
import torch.nn as nn


class VAE(nn.Module):
    def __init__(self, n=20, latent=3):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(n, 32), nn.ReLU(), nn.Linear(32, 2 * latent))
        self.decode = nn.Sequential(nn.Linear(latent, 32), nn.ReLU(), nn.Linear(32, n))

    def forward(self, x):
        mu, logvar = self.encode(x).chunk(2, dim=-1)
        z = mu + torch.exp(0.5 * logvar) * torch.randn_like(mu)
        return self.decode(z), mu, logvar


class VAE_KLDivergence:
    """0.5 * mean(mu^2 + var - log var - 1)"""

    def __call__(self, mu, logvar):
        var = torch.square(logvar)  #- here
        return 0.5 * torch.mean(torch.square(mu) + var - torch.log(1e-20 + var) - 1, -1)  #- also
#+         return 0.5 * torch.mean(torch.square(mu) + torch.exp(logvar) - logvar - 1, -1)


class VAE_ELBO:
    def __init__(self, beta=1.0):
        self.kl, self.beta = VAE_KLDivergence(), beta
        self.bce = nn.BCEWithLogitsLoss(reduction="none")

    def __call__(self, logits, x, mu, logvar):
        return (self.bce(logits, x).mean(-1) + self.beta * self.kl(mu, logvar)).mean()


torch.manual_seed(73)
vae, elbo = VAE(), VAE_ELBO()
optimizer = torch.optim.Adam(vae.parameters(), lr=1e-3)
prototypes = torch.rand(4, 20)
for step in range(25):
    x = torch.bernoulli(prototypes[torch.randint(0, 4, (32,))])
    logits, mu, lv = vae(x)
    loss = elbo(logits, x, mu, lv)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
logvar = torch.zeros(1, 3, requires_grad=True)
at_prior = elbo.kl(torch.zeros(1, 3), logvar)
grad_at_prior = torch.autograd.grad(at_prior.sum(), logvar)[0].sum().item()
kl_at_prior = at_prior.item()
print(loss.item(), kl_at_prior)
