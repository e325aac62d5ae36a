from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class LMConfig:
    vocab: int = 40
    width: int = 24
    context: int = 12
    micro_batch: int = 6
    accumulate: int = 3
    lr: float = 4e-3
    pad: int = 0


class TinyLM(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.tokens = nn.Embedding(cfg.vocab, cfg.width, padding_idx=cfg.pad)
        self.places = nn.Embedding(cfg.context, cfg.width)
        self.layer = nn.TransformerEncoderLayer(cfg.width, 3, 48, dropout=0.0, batch_first=True, norm_first=True)
        self.norm = nn.LayerNorm(cfg.width)

    def forward(self, ids):
        length = ids.shape[1]
        causal = nn.Transformer.generate_square_subsequent_mask(length)
        h = self.tokens(ids) + self.places(torch.arange(length))
        return self.norm(self.layer(h, src_mask=causal, is_causal=True)) @ self.tokens.weight.T / h.shape[-1] ** 0.5


def targets_of(ids, pad):
    return ids[:, 1:].masked_fill(ids[:, 1:] == pad, -100)


def corpus(cfg, count):
    ids = 1 + (torch.randint(1, 39, (count, 1)) + 3 * torch.arange(cfg.context)) % (cfg.vocab - 1)
    return ids.masked_fill(torch.arange(cfg.context) >= torch.randint(4, cfg.context + 1, (count, 1)), cfg.pad)


def windows(batches, size):
    for start in range(0, len(batches), size):
        yield batches[start:start + size]


torch.manual_seed(1)
cfg = LMConfig()
model = TinyLM(cfg)
optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
batches = corpus(cfg, 60).split(cfg.micro_batch)
for epoch in range(3):
    for window in windows(batches, cfg.accumulate):
        tokens = sum(int((targets_of(ids, cfg.pad) != -100).sum()) for ids in window)
        total = 0.0
        for ids in window:
            logits = model(ids[:, :-1])
            loss = F.cross_entropy(logits.transpose(1, 2), targets_of(ids, cfg.pad), reduction="sum") / tokens
            loss.backward()
            total += loss.item()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    print(f"epoch {epoch} loss {total:.3f}")
