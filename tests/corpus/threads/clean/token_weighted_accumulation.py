import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(48)
lm = nn.Sequential(nn.Embedding(12, 8), nn.Linear(8, 12))
opt = torch.optim.AdamW(lm.parameters(), lr=1e-3)
for _ in range(3):
    window = [torch.randint(0, 12, (2, n)) for n in (4, 9, 6)]
    tokens = sum(ids[:, 1:].numel() for ids in window)
    opt.zero_grad()
    for ids in window:
        logits = lm(ids[:, :-1]).flatten(0, 1)
        (F.cross_entropy(logits, ids[:, 1:].flatten(), reduction="sum") / tokens).backward()
    torch.nn.utils.clip_grad_norm_(lm.parameters(), 1.0)
    opt.step()
