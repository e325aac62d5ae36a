import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
V = 16
model = nn.Sequential(nn.Embedding(V, 12), nn.Linear(12, 24), nn.GELU(), nn.Linear(24, V))
opt = torch.optim.Adam(model.parameters(), lr=2e-3)


def microbatch(rows, longest):
    ids = torch.randint(1, V, (rows, longest + 1))
    keep = torch.arange(longest)[None] < torch.randint(2, longest + 1, (rows, 1))
    return ids[:, :-1], ids[:, 1:].masked_fill(~keep, -100)


for step in range(5):
    window = [microbatch(3, n) for n in (6, 10, 4)]
    tokens = sum((t != -100).sum() for _, t in window)
    opt.zero_grad()
    shown = 0.0
    for x, t in window:
        logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1), t.flatten(), ignore_index=-100, reduction="sum") / tokens
        loss.backward()
        shown += loss.item()
    grad_norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    print(f"step {step} loss {shown:.3f} tokens {tokens} norm {grad_norm:.2f}")
