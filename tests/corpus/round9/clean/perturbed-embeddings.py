import contextlib

import torch
import torch.nn as nn
import torch.nn.functional as F


@contextlib.contextmanager
def perturbed(weight, epsilon):
    backup = weight.detach().clone()
    norm = weight.grad.norm()
    with torch.no_grad():
        if norm > 0:
            weight.add_(epsilon * weight.grad / norm)
    try:
        yield
    finally:
        with torch.no_grad():
            weight.copy_(backup)


class BagOfWords(nn.Module):
    def __init__(self, vocab=70, width=16, classes=3):
        super().__init__()
        self.embed = nn.Embedding(vocab, width, padding_idx=0)
        self.attend = nn.Linear(width, 1)
        self.out = nn.Linear(width, classes)

    def forward(self, ids):
        words = self.embed(ids)
        scores = self.attend(torch.tanh(words)).squeeze(-1).masked_fill(ids == 0, float("-inf"))
        return self.out((scores.softmax(-1).unsqueeze(-1) * words).sum(1))


def sentences(count, length=8):
    ids = torch.randint(1, 70, (count, length))
    labels = F.one_hot(ids % 3, 3).sum(1).argmax(1)
    return ids.masked_fill(torch.arange(length) >= torch.randint(2, length + 1, (count, 1)), 0), labels


def adversarial_step(model, optimizer, ids, labels, epsilon):
    optimizer.zero_grad()
    clean = F.cross_entropy(model(ids), labels)
    clean.backward()
    with perturbed(model.embed.weight, epsilon):
        attacked = F.cross_entropy(model(ids), labels)
        attacked.backward()
    optimizer.step()
    return clean.item(), attacked.item()


torch.manual_seed(10)
model = BagOfWords()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
history = []
for step in range(20):
    ids, labels = sentences(48)
    history.append(adversarial_step(model, optimizer, ids, labels, epsilon=0.5))
print(history[0], history[-1])
