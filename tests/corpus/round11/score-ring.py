# /// case
# title = "Noise is added in place to a view of the training data"
# category = "data"
# kind = "dataset-modified-in-place"
# kinds_also_ok = ["in-place-on-view-of-data", "augmentation-accumulates", "training-data-corrupted"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["perturb", "clean", "samples", "add_"]
# symptom = "the training data take up more noise in every epoch until the ring is gone"
# symptom_check = "rings.samples.norm(dim=1).std().item() > 0.5"
# cause = "the batches are slices of the data, and add_ writes the noise into them."
# fix = "add out of place"
# ///
import math

import torch
from torch import nn


class RingData:
    def __init__(self, count, batch):
        angle = torch.rand(count) * 2 * math.pi
        radius = 1.0 + 0.03 * torch.randn(count)
        self.samples = torch.stack([radius * angle.cos(), radius * angle.sin()], 1)
        self.batch = batch

    def __len__(self):
        return math.ceil(len(self.samples) / self.batch)

    def __iter__(self):
        for start in range(0, len(self.samples), self.batch):
            yield self.samples[start:start + self.batch]  #! also


class ScoreNetwork(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.register_buffer("frequencies", torch.randn(8) * 2)
        self.net = nn.Sequential(
            nn.Linear(2 + 16, hidden), nn.SiLU(),
            nn.Linear(hidden, hidden), nn.SiLU(),
            nn.Linear(hidden, 2),
        )

    def forward(self, x, sigma):
        phase = sigma.log() * self.frequencies
        return self.net(torch.cat([x, phase.sin(), phase.cos()], 1)) / sigma


def sigma_ladder(high=0.6, low=0.03, levels=8):
    return torch.logspace(math.log10(high), math.log10(low), levels)


def perturb(clean, sigma):
    noise = torch.randn_like(clean)
    return clean.add_(sigma * noise), noise  #- here
#+     return clean + sigma * noise, noise


def denoising_score_loss(network, clean, sigmas):
    sigma = sigmas[torch.randint(len(sigmas), (len(clean), 1))]
    noisy, noise = perturb(clean, sigma)  #! also
    score = network(noisy, sigma)
    return (sigma * score + noise).square().sum(1).mean()


@torch.no_grad()
def annealed_langevin(network, sigmas, count, inner=10, rate=2e-4):
    x = torch.randn(count, 2)
    for sigma in sigmas:
        step = rate * (sigma / sigmas[-1]).square()
        for _ in range(inner):
            score = network(x, sigma.expand(count, 1))
            x = x + step * score + (2 * step).sqrt() * torch.randn_like(x)
    return x


torch.manual_seed(80)
rings = RingData(512, batch=64)
sigmas = sigma_ladder()
network = ScoreNetwork()
optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
for epoch in range(30):
    total = 0.0
    for clean in rings:
        loss = denoising_score_loss(network, clean, sigmas)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 6 == 0:
        print(f"epoch {epoch:2d} loss {total / len(rings):.4f}")
radius = annealed_langevin(network, sigmas, 200).norm(dim=1)
print(f"sampled radius {radius.mean().item():.3f} +- {radius.std().item():.3f}")
