import random

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
random.seed(0)


class Encoder(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.gru = nn.GRU(width, width)

    def forward(self, source):
        return self.gru(self.embedding(source))


class Decoder(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.score = nn.Linear(2 * width, 1)
        self.cell = nn.GRUCell(2 * width, width)
        self.out = nn.Linear(width, vocabulary)

    def forward(self, token, hidden, memory):
        scores = self.score(torch.cat([memory, hidden.expand_as(memory)], -1)).softmax(0)
        context = (scores * memory).sum(0)
        hidden = self.cell(torch.cat([self.embedding(token), context], -1), hidden)
        return self.out(hidden), hidden


encoder, decoder = Encoder(12, 16), Decoder(12, 16)
optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (encoder, decoder)]
for step in range(5):
    source = torch.randint(1, 12, (6, 8))
    target = source.flip(0)
    for optimizer in optimizers:
        optimizer.zero_grad()
    memory, hidden = encoder(source)
    hidden, token, loss = hidden[0], torch.zeros(8, dtype=torch.long), 0
    forced = random.random() < 0.5
    for t in range(len(target)):
        logits, hidden = decoder(token, hidden, memory)
        loss += F.cross_entropy(logits, target[t])
        token = target[t] if forced else logits.topk(1).indices.squeeze(1).detach()
    loss.backward()
    for module, optimizer in zip((encoder, decoder), optimizers):
        nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimizer.step()
    print(step, loss.item() / len(target))
