# /// case
# title = "Padded negatives are masked before the learned temperature divides"
# category = "numerics"
# kind = "nan-from-masked-infinity"
# kinds_also_ok = ["nan-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["masked_fill", "temperature", "logits"]
# symptom = "the temperature's gradient is NaN, the loss is finite"
# symptom_check = "history[0][0] == history[0][0] and history[0][1] != history[0][1]"
# cause = "the division's derivative multiplies zero by infinity"
# fix = "divide first, then mask"
# evidence = [
#     { url = "https://github.com/NVIDIA-NeMo/Automodel/pull/3850", title = "fix(loss): scale InfoNCE logits before masking padded negatives" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class BiEncoder(nn.Module):
    def __init__(self, vocab=64, dim=16):
        super().__init__()
        self.bag = nn.EmbeddingBag(vocab, dim)
        self.proj = nn.Linear(dim, dim)
        self.temperature = nn.Parameter(torch.tensor(0.5))

    def encode(self, ids):
        shape = ids.shape[:-1]
        return F.normalize(self.proj(self.bag(ids.reshape(-1, ids.shape[-1]))), dim=-1).view(*shape, -1)


def infonce_loss(model, query, positive, negatives, negative_valid):
    q, p, n = model.encode(query), model.encode(positive), model.encode(negatives)
    positive_and_batch = q @ p.T
    hard = torch.einsum("bd,bnd->bn", q, n)
    hard = hard.masked_fill(~negative_valid, float("-inf"))  #- here
    logits = torch.cat([positive_and_batch, hard], dim=1) / model.temperature  #! also
#+     valid = torch.cat([torch.ones_like(positive_and_batch, dtype=torch.bool), negative_valid], dim=1)
#+     logits = logits.masked_fill(~valid, float("-inf"))
    return F.cross_entropy(logits, torch.arange(len(q)))


torch.manual_seed(85)
model = BiEncoder()
optimizer = torch.optim.AdamW([
    {"params": [*model.bag.parameters(), *model.proj.parameters()], "lr": 1e-3},
    {"params": [model.temperature], "lr": 1e-2, "weight_decay": 0.0},
])
history = []
for step in range(3):
    query, positive = torch.randint(0, 64, (8, 5)), torch.randint(0, 64, (8, 9))
    negatives = torch.randint(0, 64, (8, 3, 9))
    count = torch.randint(1, 4, (8, 1))
    negative_valid = torch.arange(3) < count
    loss = infonce_loss(model, query, positive, negatives, negative_valid)
    optimizer.zero_grad()
    loss.backward()
    history.append((loss.item(), model.temperature.grad.item()))
    optimizer.step()
print(history)
