import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class SentenceEncoder(nn.Module):
    def __init__(self, vocab=200, dim=32):
        super().__init__()
        self.bag = nn.EmbeddingBag(vocab, dim, mode="mean")
        self.project = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim))

    def forward(self, ids):
        return F.normalize(self.project(self.bag(ids)), dim=-1)


class MomentumContrast(nn.Module):
    def __init__(self, encoder, queue=96, dim=32, decay=0.97, temperature=0.1):
        super().__init__()
        self.online = encoder
        self.target = copy.deepcopy(encoder)
        for p in self.target.parameters():
            p.requires_grad = False
        self.register_buffer("queue", F.normalize(torch.randn(queue, dim), dim=-1))
        self.decay, self.temperature, self.cursor = decay, temperature, 0

    @torch.no_grad()
    def update_target(self):
        for slow, fast in zip(self.target.parameters(), self.online.parameters()):
            slow.data = self.decay * slow.data + (1 - self.decay) * fast.data

    @torch.no_grad()
    def enqueue(self, keys):
        slots = (self.cursor + torch.arange(len(keys))) % len(self.queue)
        self.queue[slots] = keys
        self.cursor = (self.cursor + len(keys)) % len(self.queue)

    def forward(self, queries, positives):
        q = self.online(queries)
        with torch.no_grad():
            self.update_target()
            k = self.target(positives)
        positive = (q * k).sum(-1, keepdim=True)
        negative = q @ self.queue.clone().T
        logits = torch.cat([positive, negative], 1) / self.temperature
        self.enqueue(k)
        return F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long))


def paraphrases(count):
    topic = torch.randint(0, 20, (count, 1)) * 10
    return topic + torch.randint(0, 10, (count, 6)), topic + torch.randint(0, 10, (count, 6))


torch.manual_seed(93)
moco = MomentumContrast(SentenceEncoder())
optimizer = torch.optim.SGD(moco.online.parameters(), lr=0.2, momentum=0.9)
for step in range(80):
    loss = moco(*paraphrases(16))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        print(step, round(loss.item(), 4))
