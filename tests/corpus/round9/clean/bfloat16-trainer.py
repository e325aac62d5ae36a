from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass
class Precision:
    dtype: torch.dtype = torch.bfloat16
    enabled: bool = True

    @property
    def needs_scaling(self):
        return self.enabled and self.dtype == torch.float16


class MaskedMean(nn.Module):
    def forward(self, hidden, mask):
        mask = mask.unsqueeze(-1).to(hidden.dtype)
        return (hidden * mask).sum(1) / mask.sum(1).clamp(min=1)


class PairScorer(nn.Module):
    def __init__(self, vocab=60, width=24):
        super().__init__()
        self.embed = nn.Embedding(vocab, width, padding_idx=0)
        self.encode = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))
        self.pool = MaskedMean()

    def forward(self, ids):
        return self.pool(self.encode(self.embed(ids)), ids != 0)


class Trainer:
    def __init__(self, model, precision, lr=5e-3, max_norm=1.0, temperature=0.1):
        self.model, self.precision = model, precision
        self.max_norm, self.temperature = max_norm, temperature
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        self.scaler = torch.amp.GradScaler("cpu", enabled=precision.needs_scaling)

    def step(self, left, right):
        with torch.autocast("cpu", dtype=self.precision.dtype, enabled=self.precision.enabled):
            a, b = self.model(left), self.model(right)
        a, b = nn.functional.normalize(a.float(), dim=-1), nn.functional.normalize(b.float(), dim=-1)
        loss = nn.functional.cross_entropy(a @ b.T / self.temperature, torch.arange(len(a)))
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.item(), norm.item()


torch.manual_seed(11)
trainer = Trainer(PairScorer(), Precision())
for step in range(14):
    left = torch.randint(1, 60, (24, 8))
    right = left[:, torch.randperm(8)].masked_fill(torch.rand(24, 8) < 0.3, 0)
    report = trainer.step(left, right)
print("loss %.3f norm %.3f" % report)
