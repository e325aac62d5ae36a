import torch
from torch import nn
import torch.nn.functional as F


class SAE(nn.Module):
    def __init__(self, d=10, n=30, k=3):
        super().__init__()
        self.enc, self.dec, self.k = nn.Linear(d, n), nn.Linear(n, d), k
        self.register_buffer("idle", torch.zeros(n))

    def forward(self, x):
        pre = self.enc(x)
        top = pre.topk(self.k, -1)
        latents = torch.zeros_like(pre).scatter(-1, top.indices, F.relu(top.values))
        out = self.dec(latents)
        self.idle = torch.where(latents.detach().sum(0) > 0, 0.0, self.idle + 1)
        loss = F.mse_loss(out, x)
        dead = self.idle > 1
        if dead.any():
            revived = F.softplus(pre[:, dead]) @ self.dec.weight.T[dead]
            loss = loss + 0.1 * F.mse_loss(revived, (x - out).detach())
        return loss


torch.manual_seed(58)
sae = SAE()
opt = torch.optim.Adam(sae.parameters(), lr=3e-3)
for _ in range(8):
    loss = sae(torch.randn(32, 10))
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
