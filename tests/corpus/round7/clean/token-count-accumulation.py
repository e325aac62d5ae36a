import torch
import torch.nn as nn
import torch.nn.functional as F

PAD = 0


class TinyLM(nn.Module):
    def __init__(self, vocab=15, dim=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=PAD)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab, bias=False)

    def forward(self, ids):
        return self.head(self.gru(self.embed(ids))[0])


def ragged(n, longest):
    ids = torch.randint(1, 15, (n, longest))
    for row, keep in zip(ids, torch.randint(3, longest + 1, (n,))):
        row[keep:] = PAD
    return ids


torch.manual_seed(116)
model = TinyLM()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for update in range(6):
    micro = [ragged(4, n) for n in (6, 9, 12)]
    tokens = sum(int((ids[:, 1:] != PAD).sum()) for ids in micro)
    total = 0.0
    for ids in micro:
        logits = model(ids[:, :-1])
        summed = F.cross_entropy(logits.transpose(1, 2), ids[:, 1:], ignore_index=PAD, reduction="sum")
        (summed / tokens).backward()
        total += summed.item()
    optimizer.step()
    optimizer.zero_grad()
    print(update, total / tokens)
