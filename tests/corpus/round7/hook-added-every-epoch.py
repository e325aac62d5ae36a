# /// case
# title = "A gradient hook is registered anew in every epoch"
# category = "hook"
# kind = "hook-registered-repeatedly"
# kinds_also_ok = ["hooks-accumulate", "gradient-scaled-repeatedly"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["register_hook", "damp"]
# symptom = "the embedding's gradient is scaled once per epoch that has passed"
# symptom_check = "len(model.embed.weight._backward_hooks) > 1"
# cause = "the hook of the epoch before is not removed"
# fix = "register once"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class SkipGram(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.context = nn.Linear(dim, vocab, bias=False)

    def forward(self, word):
        return self.context(self.embed(word))


def damp(factor):
    def hook(grad):
        return grad * factor
    return hook


def skip_pairs(text, window=2):
    for i, word in enumerate(text):
        for j in range(max(0, i - window), min(len(text), i + window + 1)):
            if i != j:
                yield word, text[j]


torch.manual_seed(98)
text = torch.randint(0, 12, (50,)).tolist()
pairs = torch.tensor(list(skip_pairs(text)))
model = SkipGram(12, 8)
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
#+ model.embed.weight.register_hook(damp(0.3))
for epoch in range(4):
    model.embed.weight.register_hook(damp(0.3))  #- here
    total = 0.0
    for chunk in pairs[torch.randperm(len(pairs))].split(50):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(chunk[:, 0]), chunk[:, 1])
        loss.backward()  #! also
        optimizer.step()
        total += loss.item()
    print(epoch, total)
