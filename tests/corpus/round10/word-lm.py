# /// case
# title = "Micro-batches with different numbers of tokens are averaged each by its own count, then by the number of micro-batches"
# category = "accumulation"
# kind = "mean-of-micro-batch-means"
# kinds_also_ok = ["loss-normalised-per-micro-batch", "accumulation-loss-scaling", "unequal-token-weights", "wrong-accumulation-divisor"]
# severity = "warning"
# names = ["cross_entropy", "window", "targets"]
# symptom = "the accumulated gradient is not that of the same sentences in one batch; short sentences weigh several times more"
# symptom_check = "(lambda seen: not torch.allclose(seen[2], seen[4] / sum(int((t != PAD).sum()) for _, t in window), rtol=1e-2, atol=1e-6))((model.zero_grad(), accumulate(model, window), model.out.weight.grad.clone(), model.zero_grad(), torch.autograd.grad(sum(F.cross_entropy(model(s).transpose(1, 2), t, ignore_index=PAD, reduction='sum') for s, t in window), model.out.weight)[0]))"
# cause = "Each mean divides by the tokens of its own micro-batch; the window's mean needs the sum over the tokens of the window."
# fix = "reduction='sum' and divide by the targets of the window"
# ///
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
    targets = sum(int((target != PAD).sum()) for _, target in window)  #! also
    total = 0.0
    for source, target in window:
        logits = model(source)
        loss = F.cross_entropy(logits.transpose(1, 2), target, ignore_index=PAD) / len(window)  #- here
#+         loss = F.cross_entropy(logits.transpose(1, 2), target, ignore_index=PAD, reduction="sum") / targets
        loss.backward()  #! also
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
