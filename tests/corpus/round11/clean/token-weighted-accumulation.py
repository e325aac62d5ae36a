from itertools import islice

import torch
from torch import nn
import torch.nn.functional as F

IGNORE = -100


class Tagger(nn.Module):
    def __init__(self, words, tags, dim=20):
        super().__init__()
        self.embed = nn.Embedding(words, dim)
        self.context = nn.Conv1d(dim, dim, 3, padding=1)
        self.out = nn.Linear(dim, tags)

    def forward(self, ids):
        hidden = self.embed(ids)
        hidden = hidden + torch.tanh(self.context(hidden.transpose(1, 2))).transpose(1, 2)
        return self.out(hidden)


def sentences(batch_size, words=40, tags=4):
    table = torch.randint(0, tags, (words,))
    while True:
        length = torch.randint(3, 20, (batch_size,))
        ids = torch.randint(1, words, (batch_size, int(length.max())))
        outside = torch.arange(ids.shape[1]) >= length[:, None]
        previous = torch.cat([torch.zeros(batch_size, 1, dtype=torch.long), ids[:, :-1]], dim=1)
        target = (table[ids] + table[previous]) % tags
        yield ids.masked_fill(outside, 0), target.masked_fill(outside, IGNORE)


def grouped(iterable, size):
    iterator = iter(iterable)
    while group := list(islice(iterator, size)):
        yield group


class AccumulatingTrainer:
    """The loss of a group is its mean per token, however the tokens are spread over the micro-batches."""

    def __init__(self, model, every, lr):
        self.model, self.every = model, every
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=40, gamma=0.5)
        self.updates = 0

    def backward(self, group):
        tokens = sum(int((target != IGNORE).sum()) for _, target in group)
        value = 0.0
        for ids, target in group:
            logits = self.model(ids).flatten(0, 1)
            loss = F.cross_entropy(logits, target.flatten(), ignore_index=IGNORE, reduction="sum") / tokens
            loss.backward()
            value += loss.item()
        return value

    def run(self, stream):
        for group in grouped(stream, self.every):
            value = self.backward(group)
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.scheduler.step()
            self.updates += 1
            yield value


torch.manual_seed(27)
stream = sentences(16)
trainer = AccumulatingTrainer(Tagger(40, 4), every=4, lr=2e-2)
for value in trainer.run(islice(stream, 250)):
    if trainer.updates % 15 == 0:
        print(f"update {trainer.updates} loss {value:.4f} lr {trainer.scheduler.get_last_lr()[0]:.4f}")
print("updates", trainer.updates)
with torch.inference_mode():
    ids, target = next(stream)
    keep = target != IGNORE
    print(f"accuracy {(trainer.model(ids).argmax(-1) == target)[keep].float().mean().item():.3f}")
