import random

import torch
import torch.nn as nn
import torch.nn.functional as F


class Multilingual(nn.Module):
    def __init__(self, languages, vocab=30, width=12):
        super().__init__()
        self.shared = nn.Embedding(vocab, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.heads = nn.ModuleDict({name: nn.Linear(width, vocab) for name in languages})

    def forward(self, tokens, language):
        return self.heads[language](self.rnn(self.shared(tokens))[0])


random.seed(12)
torch.manual_seed(12)
languages = {"de": 1, "fr": 2, "it": 3}
model = Multilingual(languages)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
seen = {name: [] for name in languages}
for step in range(24):
    language = random.choice(list(languages))
    start = torch.randint(0, 30, (16, 1))
    text = (start + languages[language] * torch.arange(9)) % 30
    logits = model(text[:, :-1], language)
    loss = F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    seen[language].append(loss.item())
print({name: (values[0], values[-1]) for name, values in seen.items()})
