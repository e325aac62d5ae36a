import torch
import torch.nn.functional as F
from torch import nn


class Codebook(nn.Module):
    def __init__(self, codes, dim, decay=0.9):
        super().__init__()
        self.register_buffer("vectors", torch.randn(codes, dim))
        self.register_buffer("usage", torch.ones(codes))
        self.register_buffer("sums", self.vectors.clone())
        self.decay = decay

    def forward(self, z):
        index = torch.cdist(z.detach(), self.vectors).argmin(-1)
        q = self.vectors[index]
        if self.training:
            self.refresh(z.detach(), index)
        commitment = F.mse_loss(z, q)
        return z + (q - z).detach(), commitment

    def refresh(self, z, index):
        hits = F.one_hot(index, len(self.usage)).type_as(z)
        self.usage.mul_(self.decay).add_(hits.sum(0), alpha=1 - self.decay)
        self.sums.mul_(self.decay).add_(hits.T @ z, alpha=1 - self.decay)
        self.vectors = self.sums / self.usage.clamp(min=1e-2).unsqueeze(-1)


class VQAutoencoder(nn.Module):
    def __init__(self, bins, dim=8, codes=16):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(bins, 32), nn.ReLU(), nn.Linear(32, dim))
        self.codebook = Codebook(codes, dim)
        self.decoder = nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, bins))

    def forward(self, x):
        q, commitment = self.codebook(self.encoder(x))
        return self.decoder(q), commitment


torch.manual_seed(55)
patterns = torch.rand(6, 20)
frames = patterns[torch.randint(0, 6, (320,))] + 0.05 * torch.randn(320, 20)
model = VQAutoencoder(bins=20)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
curve = []
for epoch in range(12):
    for rows in torch.randperm(320).split(64):
        rebuilt, commitment = model(frames[rows])
        loss = F.mse_loss(rebuilt, frames[rows]) + 0.25 * commitment
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    curve.append(loss.item())
print([round(v, 4) for v in curve])
