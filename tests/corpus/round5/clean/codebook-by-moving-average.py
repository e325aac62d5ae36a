import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(41)


class EmaQuantizer(nn.Module):
    def __init__(self, k, dim, decay=0.9):
        super().__init__()
        self.decay = decay
        self.register_buffer("codes", torch.randn(k, dim))
        self.register_buffer("count", torch.ones(k))
        self.register_buffer("total", self.codes.clone())

    def forward(self, z):
        idx = torch.cdist(z.detach(), self.codes).argmin(1)
        q = self.codes[idx]
        if self.training:
            with torch.no_grad():
                one = F.one_hot(idx, len(self.codes)).float()
                self.count.mul_(self.decay).add_(one.sum(0), alpha=1 - self.decay)
                self.total.mul_(self.decay).add_(one.T @ z, alpha=1 - self.decay)
                self.codes.copy_(self.total / self.count.clamp(min=1e-3)[:, None])
        commit = F.mse_loss(z, q)
        return z + (q - z).detach(), commit


enc, vq, dec = nn.Linear(10, 4), EmaQuantizer(8, 4), nn.Linear(4, 10)
optimizer = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=3e-3)
for step in range(15):
    x = torch.randn(40, 10)
    q, commit = vq(enc(x))
    loss = F.mse_loss(dec(q), x) + 0.25 * commit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
