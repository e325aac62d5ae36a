import torch
import torch.nn as nn
import torch.nn.functional as F


class EMACodebook(nn.Module):
    def __init__(self, n=16, dim=4, decay=0.9):
        super().__init__()
        self.decay = decay
        self.register_buffer("codes", torch.randn(n, dim))
        self.register_buffer("count", torch.ones(n))
        self.register_buffer("total", self.codes.clone())

    def forward(self, z):
        index = torch.cdist(z, self.codes).argmin(1)
        q = self.codes[index]
        if self.training:
            with torch.no_grad():
                hot = F.one_hot(index, len(self.codes)).float()
                self.count.lerp_(hot.sum(0), 1 - self.decay)
                self.total.lerp_(hot.T @ z, 1 - self.decay)
                self.codes.copy_(self.total / self.count.clamp(min=1e-3)[:, None])
        return z + (q - z).detach(), F.mse_loss(z, q)


torch.manual_seed(2)
enc, book, dec = nn.Linear(10, 4), EMACodebook(), nn.Linear(4, 10)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=1e-2)
x = torch.randn(128, 10)
for _ in range(8):
    q, commit = book(enc(x))
    loss = F.mse_loss(dec(q), x) + 0.25 * commit
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
