from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Config:
    vocab: int = 30
    dim: int = 12
    shared: int = 6


class Towers(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.language = nn.EmbeddingBag(cfg.vocab, cfg.dim).requires_grad_(False)
        self.image, self.text_proj = nn.Linear(20, cfg.shared), nn.Linear(cfg.dim, cfg.shared)

    def forward(self, pixels, tokens):
        with torch.no_grad():
            pooled = self.language(tokens)
        a, b = self.image(pixels), self.text_proj(pooled)
        return nn.functional.normalize(a, dim=1) @ nn.functional.normalize(b, dim=1).T / 0.2


torch.manual_seed(1)
cfg = Config()
model = Towers(cfg)
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
for step in range(5):
    scores = model(torch.randn(8, 20), torch.randint(0, cfg.vocab, (8, 5)))
    loss = nn.functional.cross_entropy(scores, torch.arange(8))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
