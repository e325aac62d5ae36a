# /// case
# title = "The next quantizer's residual subtracts a straight-through output"
# category = "graph-break"
# kind = "cancelled-gradient"
# kinds_also_ok = ["zero-gradient", "straight-through-error"]
# severity = "warning"
# names = ["residual", "quantized"]
# symptom = "the commitment losses of all quantizers but the first have zero gradient in the encoder"
# symptom_check = "later_commit.abs().max().item() == 0"
# cause = "residual - quantized has gradient 1 - 1"
# fix = "subtract quantized.detach()"
# evidence = [
#     { url = "https://github.com/facebookresearch/encodec/issues/25", title = "Zero grad in residual vq" },
#     { url = "https://github.com/EdoardoBotta/RQ-VAE-Recommender/issues/67", title = "Backpropagation Loss issue?" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Codebook(nn.Module):
    """Nearest neighbour with a moving average of its members."""

    def __init__(self, size, dim, decay=0.95):
        super().__init__()
        self.decay = decay
        self.register_buffer("embed", torch.randn(size, dim))

    def forward(self, x):
        idx = torch.cdist(x.detach(), self.embed).argmin(-1)
        q = self.embed[idx].clone()
        if self.training:
            with torch.no_grad():
                onehot = F.one_hot(idx, len(self.embed)).float()
                count = onehot.sum(0)
                mean = (onehot.T @ x) / count.clamp(min=1)[:, None]
                seen = count > 0
                self.embed[seen] = self.decay * self.embed[seen] + (1 - self.decay) * mean[seen]
        commit = F.mse_loss(x, q)
        return x + (q - x).detach(), commit


class ResidualVQ(nn.Module):
    def __init__(self, n_q=3, size=12, dim=6):
        super().__init__()
        self.layers = nn.ModuleList(Codebook(size, dim) for _ in range(n_q))

    def forward(self, x):
        out, residual, losses = 0.0, x, []
        for layer in self.layers:
            quantized, commit = layer(residual)
            residual = residual - quantized  #- here
#+             residual = residual - quantized.detach()
            out = out + quantized
            losses.append(commit)  #! also
        return out, losses


torch.manual_seed(7)
encoder, decoder, rvq = nn.Linear(24, 6), nn.Linear(6, 24), ResidualVQ()
opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
for it in range(8):
    wave = torch.randn(40, 24)
    z = encoder(wave)
    q, commits = rvq(z)
    later_commit = torch.autograd.grad(commits[1] + commits[2], z, retain_graph=True)[0]
    loss = F.l1_loss(decoder(z + (q - z).detach()), wave) + 0.5 * torch.stack(commits).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
