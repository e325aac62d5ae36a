import torch
import torch.nn as nn
import torch.nn.functional as F

PAD, VOCAB = 0, 50


class WordLM(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, VOCAB)

    def forward(self, tokens):
        states, _ = self.gru(self.embedding(tokens))
        return self.out(states)


def sentences(count):
    for _ in range(count):
        length = int(torch.randint(4, 28, ()))
        start, stride = torch.randint(0, VOCAB - 1, ()), torch.randint(1, 4, ())
        yield 1 + (start + stride * torch.arange(length)) % (VOCAB - 1)


def micro_batches(corpus, size):
    ordered = sorted(corpus, key=len)
    for start in range(0, len(ordered), size):
        padded = nn.utils.rnn.pad_sequence(ordered[start:start + size], batch_first=True, padding_value=PAD)
        yield padded[:, :-1], padded[:, 1:]


def accumulate(model, window):
    targets = sum(int((target != PAD).sum()) for _, target in window)
    total = 0.0
    for source, target in window:
        logits = model(source)
        loss = F.cross_entropy(logits.transpose(1, 2), target, ignore_index=PAD) / len(window)
        loss.backward()
        total += loss.item()
    return total, targets


torch.manual_seed(5)
batches = list(micro_batches(list(sentences(128)), 8))
model = WordLM()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
seen = 0
for epoch in range(8):
    order = torch.randperm(len(batches)).tolist()
    for first in range(0, len(order), 4):
        window = [batches[index] for index in order[first:first + 4]]
        optimizer.zero_grad()
        loss, targets = accumulate(model, window)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        seen += targets
    print(f"{seen} tokens, loss {loss:.4f}")
