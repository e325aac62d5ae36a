import torch
import torch.nn as nn
import torch.nn.functional as F


class Quantizer(nn.Module):
    def __init__(self, codes, dim, commitment=0.25):
        super().__init__()
        self.codebook = nn.Embedding(codes, dim)
        nn.init.uniform_(self.codebook.weight, -1.0, 1.0)
        self.commitment = commitment

    def forward(self, z):
        with torch.no_grad():
            index = torch.cdist(z, self.codebook.weight).argmin(-1)
        q = self.codebook(index)
        loss = F.mse_loss(q, z.detach()) + self.commitment * F.mse_loss(z, q.detach())
        return z + (q - z).detach(), loss, index


class VQVAE(nn.Module):
    def __init__(self, length, dim=4, codes=16):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(length, 48), nn.ReLU(), nn.Linear(48, dim))
        self.vq = Quantizer(codes, dim)
        self.dec = nn.Sequential(nn.Linear(dim, 48), nn.ReLU(), nn.Linear(48, length))

    def forward(self, x):
        q, vq_loss, index = self.vq(self.enc(x))
        return self.dec(q), vq_loss, index


def gestures(n, length=20):
    t = torch.linspace(0, 1, length)
    kind = torch.randint(4, (n, 1))
    phase = kind * 1.57 + 0.1 * torch.randn(n, 1)
    return torch.sin(6.28 * t + phase) * (1 + 0.5 * (kind % 2)) + 0.05 * torch.randn(n, length)


torch.manual_seed(83)
data = gestures(400)
model = VQVAE(data.shape[1])
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
recon_log = []
for epoch in range(30):
    for rows in torch.randperm(len(data)).chunk(8):
        x = data[rows]
        x_hat, vq_loss, index = model(x)
        recon = F.mse_loss(x_hat, x)
        opt.zero_grad()
        (recon + vq_loss).backward()
        opt.step()
    recon_log.append(recon.item())
print("recon", recon_log[0], recon_log[-1], "codes used", index.unique().numel())
