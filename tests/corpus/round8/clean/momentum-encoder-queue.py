import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class Moco(nn.Module):
    def __init__(self, encoder, width, size=64, momentum=0.9, temperature=0.2):
        super().__init__()
        self.query = encoder
        self.key = copy.deepcopy(encoder).requires_grad_(False)
        self.momentum, self.temperature = momentum, temperature
        self.register_buffer("queue", F.normalize(torch.randn(size, width), dim=1))
        self.pointer = 0

    @torch.no_grad()
    def follow(self):
        for k, q in zip(self.key.parameters(), self.query.parameters()):
            k.data = self.momentum * k.data + (1 - self.momentum) * q.data

    @torch.no_grad()
    def enqueue(self, keys):
        rows = (self.pointer + torch.arange(len(keys))) % len(self.queue)
        self.queue[rows] = keys
        self.pointer = int((self.pointer + len(keys)) % len(self.queue))

    def forward(self, a, b):
        q = F.normalize(self.query(a), dim=1)
        with torch.no_grad():
            self.follow()
            k = F.normalize(self.key(b), dim=1)
        logits = torch.cat([(q * k).sum(1, keepdim=True), q @ self.queue.clone().T], dim=1)
        self.enqueue(k)
        return F.cross_entropy(logits / self.temperature, torch.zeros(len(a), dtype=torch.long))


torch.manual_seed(24)
model = Moco(nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 8)), width=8)
optimizer = torch.optim.AdamW(model.query.parameters(), lr=5e-3)
for step in range(16):
    x = torch.randn(16, 12)
    loss = model(x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 4 == 0:
        print(step, loss.item())
