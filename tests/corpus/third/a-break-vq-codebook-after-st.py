# /// case
# title = "Codebook loss is computed after the straight-through patch"
# category = "graph-break"
# kind = "graph-break-detach"
# kinds_also_ok = ["straight-through-wrong", "parameter-without-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["codebook", "q"]
# difficulty = "hard"
# symptom = "the codebook never changes; codebook.weight.grad is None; reconstruction still improves"
# symptom_check = "model.vq.codebook.weight.grad is None"
# cause = "q is already z + (q - z).detach() when the codebook loss uses it, so that loss has no path to the embedding"
# fix = "compute both quantisation losses before patching the gradient"
# evidence = [{ url = "https://github.com/andylolu2/jax-vqvae-gpt/issues/2" }, { url = "https://github.com/MishaLaskin/vqvae/pull/20" }]
# ///
"""VQ-VAE on short one-dimensional waveforms."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class VectorQuantizer(nn.Module):
    def __init__(self, entries, dim, beta=0.25):
        super().__init__()
        self.codebook = nn.Embedding(entries, dim)
        self.codebook.weight.data.uniform_(-1.0 / entries, 1.0 / entries)
        self.beta = beta

    def forward(self, z):
        flat = z.reshape(-1, z.size(-1))
        idx = torch.cdist(flat.detach(), self.codebook.weight.detach()).argmin(dim=1)
        q = self.codebook(idx).view_as(z)  #! also
        q = z + (q - z).detach()  #- here
        codebook_loss = F.mse_loss(q, z.detach())  #! here
        commit_loss = F.mse_loss(z, q.detach())
#+         q = z + (q - z).detach()
        return q, codebook_loss + self.beta * commit_loss, idx.view(z.shape[:-1])  #! also


class VQVAE(nn.Module):
    def __init__(self, entries=16, dim=8):
        super().__init__()
        self.enc = nn.Sequential(
            nn.Conv1d(1, 16, 4, stride=2, padding=1), nn.ReLU(),
            nn.Conv1d(16, dim, 4, stride=2, padding=1),
        )
        self.vq = VectorQuantizer(entries, dim)
        self.dec = nn.Sequential(
            nn.ConvTranspose1d(dim, 16, 4, stride=2, padding=1), nn.ReLU(),
            nn.ConvTranspose1d(16, 1, 4, stride=2, padding=1),
        )

    def forward(self, x):
        z = self.enc(x).transpose(1, 2)
        q, vq_loss, idx = self.vq(z)
        return self.dec(q.transpose(1, 2)), vq_loss, idx


def waves(n, length=32):
    t = torch.linspace(0, 1, length)
    freq = torch.randint(1, 5, (n, 1)).float()
    phase = torch.rand(n, 1) * 2 * math.pi
    return torch.sin(2 * math.pi * freq * t + phase).unsqueeze(1)


def perplexity(idx, entries):
    p = torch.bincount(idx.flatten(), minlength=entries).float()
    p = p / p.sum()
    return torch.exp(-(p * (p + 1e-10).log()).sum()).item()


torch.manual_seed(0)
model = VQVAE()
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
log = []
for step in range(25):
    x = waves(24)
    recon, vq_loss, idx = model(x)
    loss = F.mse_loss(recon, x) + vq_loss
    opt.zero_grad()
    loss.backward()
    opt.step()
    log.append((loss.item(), perplexity(idx, 16)))
print(f"loss {log[-1][0]:.3f} perplexity {log[-1][1]:.1f}")
