# /// case
# title = "Leftover micro-batches of an epoch leak into the first step of the next"
# category = "accumulation"
# kind = "accumulation-remainder-leaks"
# kinds_also_ok = ["missing-zero-grad", "accumulation-not-normalised"]
# severity = "warning"
# names = ["accumulate", "step", "zero_grad", "number"]
# difficulty = "hard"
# symptom = "gradients of the last micro-batches are never applied in their epoch and are added to the next one"
# symptom_check = "any(p.grad is not None and float(p.grad.abs().sum()) > 0 for p in trainer.model.parameters())"
# cause = "the step condition ignores the end of the epoch; 10 batches are not divisible by 4"
# fix = "step at the last batch of the epoch as well"
# evidence = [{ url = "https://github.com/meta-pytorch/torchtune/pull/2745" }, { url = "https://github.com/WalkingMeatAxolotl/AnimaLoraStudio/pull/305" }, { url = "https://github.com/timoschick/pet/issues/36" }]
# ///
"""Sentence-pair scorer with gradient accumulation and linear warm-up."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Args:
    epochs: int = 3
    batch: int = 12
    accumulate: int = 4
    lr: float = 4e-3
    warmup: int = 3
    clip: float = 1.0


class PairScorer(nn.Module):
    def __init__(self, vocab=50, dim=24):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.encode = nn.GRU(dim, dim, batch_first=True)
        self.score = nn.Sequential(nn.Linear(4 * dim, 32), nn.ReLU(), nn.Linear(32, 1))

    def side(self, ids):
        return self.encode(self.embed(ids))[1].squeeze(0)

    def forward(self, a, b):
        u, v = self.side(a), self.side(b)
        return self.score(torch.cat([u, v, (u - v).abs(), u * v], dim=1)).squeeze(1)


class Trainer:
    def __init__(self, model, args):
        self.model, self.args = model, args
        self.opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
        self.sched = torch.optim.lr_scheduler.LambdaLR(self.opt, lambda s: min(1.0, (s + 1) / args.warmup))
        self.updates = 0

    def apply(self):
        nn.utils.clip_grad_norm_(self.model.parameters(), self.args.clip)
        self.opt.step()
        self.sched.step()
        self.opt.zero_grad()
        self.updates += 1

    def epoch(self, loader):
        total, k = len(loader), self.args.accumulate
        running = 0.0
        for number, (a, b, y) in enumerate(loader, start=1):  #! also
            group = min(k, total - (number - 1) // k * k)
            loss = F.binary_cross_entropy_with_logits(self.model(a, b), y) / group
            loss.backward()  #! also
            running += loss.item()
            if number % k == 0:  #- here
#+             if number % k == 0 or number == total:
                self.apply()  #! here
        return running  #! here


torch.manual_seed(0)
args = Args()
a = torch.randint(0, 50, (120, 6))
b = torch.where(torch.rand(120, 1) < 0.5, a.flip(1), torch.randint(0, 50, (120, 6)))
y = (a.flip(1) == b).all(dim=1).float()
loader = DataLoader(TensorDataset(a, b, y), batch_size=args.batch, shuffle=True)
trainer = Trainer(PairScorer(), args)
print([round(trainer.epoch(loader), 3) for _ in range(args.epochs)], trainer.updates)
