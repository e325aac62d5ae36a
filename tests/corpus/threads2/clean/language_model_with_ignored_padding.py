from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass
class LMConfig:
    vocab: int = 24
    dim: int = 16
    pad: int = 0
    lr: float = 1e-2


class TinyLM(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.embed = nn.Embedding(cfg.vocab, cfg.dim, padding_idx=cfg.pad)
        self.rnn, self.head = nn.LSTM(cfg.dim, cfg.dim, batch_first=True), nn.Linear(cfg.dim, cfg.vocab)

    def forward(self, ids, labels):
        logits = self.head(self.rnn(self.embed(ids))[0])
        return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)


torch.manual_seed(42)
cfg = LMConfig()
model = TinyLM(cfg)
optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
for step in range(5):
    ids = (torch.randint(1, 24, (6, 1)) + torch.arange(8)) % 23 + 1
    for row in range(6):
        ids[row, 8 - row % 3 :] = cfg.pad
    loss = model(ids, ids.masked_fill(ids == cfg.pad, -100))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
