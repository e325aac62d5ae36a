import torch
from torch import nn
import torch.nn.functional as F


class Codebook(nn.Module):
    """Codes follow the running mean of the vectors that they are given."""

    def __init__(self, codes, dim, decay=0.95):
        super().__init__()
        self.decay = decay
        self.register_buffer("vectors", torch.randn(codes, dim) * 0.5)
        self.register_buffer("counts", torch.ones(codes))
        self.register_buffer("sums", self.vectors.clone())

    @torch.no_grad()
    def assign(self, x):
        return torch.cdist(x, self.vectors).argmin(dim=1)

    @torch.no_grad()
    def update(self, x, index):
        chosen = F.one_hot(index, len(self.vectors)).to(x.dtype)
        self.counts.lerp_(chosen.sum(0), 1.0 - self.decay)
        self.sums.lerp_(chosen.t() @ x, 1.0 - self.decay)
        self.vectors.copy_(self.sums / self.counts.clamp(min=1e-3).unsqueeze(1))

    def forward(self, x):
        index = self.assign(x)
        quantised = self.vectors[index]
        if self.training:
            self.update(x.detach(), index)
        return quantised, index


class ResidualQuantiser(nn.Module):
    def __init__(self, levels, codes, dim):
        super().__init__()
        self.books = nn.ModuleList(Codebook(codes, dim) for _ in range(levels))

    def forward(self, x):
        residual, total, commitment, indices = x, torch.zeros_like(x), 0.0, []
        for book in self.books:
            quantised, index = book(residual)
            commitment = commitment + F.mse_loss(residual, quantised)
            residual = residual - quantised
            total = total + quantised
            indices.append(index)
        return x + (total - x).detach(), commitment, torch.stack(indices, dim=1)


class ItemTokenizer(nn.Module):
    def __init__(self, features, dim=8, levels=2, codes=16):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(features, 32), nn.ReLU(), nn.Linear(32, dim))
        self.quantise = ResidualQuantiser(levels, codes, dim)
        self.decode = nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, features))

    def forward(self, x):
        latent, commitment, tokens = self.quantise(self.encode(x))
        return self.decode(latent), commitment, tokens


def content_embeddings(count, clusters=12, features=16):
    centres = 2.0 * torch.randn(clusters, features)
    return centres[torch.randint(0, clusters, (count,))] + 0.3 * torch.randn(count, features)


torch.manual_seed(81)
items = content_embeddings(1024)
model = ItemTokenizer(16)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(10):
    model.train()
    for batch in items[torch.randperm(1024)].split(128):
        restored, commitment, _ = model(batch)
        loss = F.mse_loss(restored, batch) + 0.25 * commitment
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
model.eval()
with torch.no_grad():
    restored, _, tokens = model(items)
    print(f"mse {F.mse_loss(restored, items):.4f}, distinct token pairs {len(tokens.unique(dim=0))}")
