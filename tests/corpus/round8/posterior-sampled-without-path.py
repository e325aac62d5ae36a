# /// case
# title = "The latent of a VAE is drawn by sample()"
# category = "graph-break"
# kind = "sample-instead-of-rsample"
# kinds_also_ok = ["missing-reparameterisation"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["sample", "rsample", "posterior"]
# symptom = "while the KL weight is zero the encoder has no gradient at all"
# symptom_check = "encoder_norms[0] == 0.0"
# cause = "Normal.sample() runs under no_grad, so that the reconstruction loss does not reach the encoder; only the KL term does."
# fix = "rsample()"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal, kl_divergence


class VAE(nn.Module):
    def __init__(self, pixels=25, latent=3):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(pixels, 32), nn.ELU(), nn.Linear(32, 2 * latent))
        self.decoder = nn.Sequential(nn.Linear(latent, 32), nn.ELU(), nn.Linear(32, pixels))

    def posterior(self, x):
        mean, log_scale = self.encoder(x).chunk(2, dim=-1)
        return Normal(mean, log_scale.clamp(-5, 3).exp())

    def forward(self, x):
        q = self.posterior(x)
        z = q.sample()  #- here
#+         z = q.rsample()
        return self.decoder(z), q  #! also


def kl_weight(step, warm_up=10):
    return min(1.0, step / warm_up)


torch.manual_seed(19)
basis = torch.rand(3, 25)
data = (torch.rand(120, 3) @ basis).clamp(0, 1)
vae = VAE()
optimizer = torch.optim.Adam(vae.parameters(), lr=5e-3)
encoder_norms = []
for step in range(16):
    x = data[torch.randint(0, 120, (40,))]
    logits, q = vae(x)
    rec = F.binary_cross_entropy_with_logits(logits, x, reduction="sum") / len(x)
    kl = kl_divergence(q, Normal(0.0, 1.0)).sum(1).mean()
    loss = rec + kl_weight(step) * kl
    optimizer.zero_grad()
    loss.backward()
    grads = [p.grad for p in vae.encoder.parameters() if p.grad is not None]
    encoder_norms.append(nn.utils.get_total_norm(grads).item() if grads else 0.0)
    optimizer.step()
    print(f"{step:2d} rec {rec.item():.3f} kl {kl.item():.4f}")
