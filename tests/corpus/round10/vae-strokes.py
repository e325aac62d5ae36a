# /// case
# title = "The latent is drawn with sample(), so the reconstruction cannot train the encoder"
# category = "graph-break"
# kind = "sample-instead-of-rsample"
# kinds_also_ok = ["non-reparameterized-sample", "sampling-breaks-graph", "detached-latent"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["sample", "posterior", "z"]
# symptom = "the KL falls to zero, the encoder ignores its input and the reconstructions are all the same"
# symptom_check = "history[-1]['kl'] < 0.05 and not model.posterior(data).sample().requires_grad"
# cause = "Normal.sample runs without gradients; the encoder is trained by the KL term alone."
# fix = "posterior.rsample()"
# ///
import math

import torch
from torch import nn
from torch.distributions import Bernoulli, Normal, kl_divergence


class StrokeVAE(nn.Module):
    def __init__(self, pixels, latent=2, hidden=48):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(pixels, hidden), nn.ELU(), nn.Linear(hidden, 2 * latent))
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.ELU(), nn.Linear(hidden, pixels))
        self.register_buffer("zero", torch.zeros(latent))

    def posterior(self, x):
        mean, raw = self.encoder(x).chunk(2, dim=-1)
        return Normal(mean, nn.functional.softplus(raw) + 1e-3)

    def decode(self, z):
        return Bernoulli(logits=self.decoder(z))

    def negative_elbo(self, x, beta):
        posterior = self.posterior(x)
        z = posterior.sample()  #- here
#+         z = posterior.rsample()
        recon = -self.decode(z).log_prob(x).sum(-1)  #! also
        kl = kl_divergence(posterior, Normal(self.zero, self.zero + 1)).sum(-1)
        return (recon + beta * kl).mean(), recon.mean(), kl.mean()


def strokes(count, side=8):
    yy, xx = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    angle = torch.rand(count, 1, 1) * math.pi
    offset = (torch.rand(count, 1, 1) - 0.5) * 4
    distance = (xx - 3.5) * angle.cos() + (yy - 3.5) * angle.sin() - offset
    return (distance.abs() < 0.9).float().flatten(1)


torch.manual_seed(3)
data = strokes(512)
model = StrokeVAE(data.shape[1])
optim = torch.optim.Adam(model.parameters(), lr=4e-3)
history = []
for epoch in range(40):
    for x in data[torch.randperm(len(data))].split(64):
        optim.zero_grad()
        loss, recon, kl = model.negative_elbo(x, beta=0.5)
        loss.backward()  #! also
        optim.step()
    history.append({"loss": loss.item(), "recon": recon.item(), "kl": kl.item()})
print(history[0])
print(history[-1])
