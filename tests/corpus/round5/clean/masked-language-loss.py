import torch
from torch import nn

torch.manual_seed(30)
PAD, IGNORE = 0, -100


def batch(lengths, vocab=25):
    rows = [torch.randint(1, vocab, (n,)) for n in lengths]
    ids = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
    return ids, ids.masked_fill(ids == PAD, IGNORE)


embed, rnn, head = nn.Embedding(25, 16, padding_idx=PAD), nn.GRU(16, 16, batch_first=True), nn.Linear(16, 25)
params = [*embed.parameters(), *rnn.parameters(), *head.parameters()]
optimizer = torch.optim.AdamW(params, lr=3e-3)
for update in range(4):
    window = [batch(torch.randint(3, 15, (6,)).tolist()) for _ in range(3)]
    tokens = sum((labels[:, 1:] != IGNORE).sum() for _, labels in window)
    total = 0.0
    for ids, labels in window:
        logits = head(rnn(embed(ids))[0])[:, :-1]
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=IGNORE, reduction="sum") / tokens
        loss.backward()
        total += loss.item()
    optimizer.step()
    optimizer.zero_grad()
    print(update, total)
