from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass
class OptimConfig:
    lr: float = 3e-3
    weight_decay: float = 0.1
    betas: tuple = (0.9, 0.95)


def configure(model, c):
    params = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in params if p.dim() >= 2], "weight_decay": c.weight_decay},
        {"params": [p for p in params if p.dim() < 2], "weight_decay": 0.0},
    ]
    assert sum(len(g["params"]) for g in groups) == len(params)
    return torch.optim.AdamW(groups, lr=c.lr, betas=c.betas)


torch.manual_seed(35)
model = nn.Sequential(nn.Embedding(30, 16), nn.Flatten(), nn.LayerNorm(64), nn.Linear(64, 5))
opt = configure(model, OptimConfig())
for it in range(10):
    ids = torch.randint(0, 30, (32, 4))
    loss = nn.functional.cross_entropy(model(ids), ids.sum(1) % 5)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
print(loss.item())
