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
            residual = residual - quantized
            out = out + quantized
            losses.append(commit)
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
