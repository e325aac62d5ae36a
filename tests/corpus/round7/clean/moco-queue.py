import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class MoCo(nn.Module):
    def __init__(self, dim=6, size=60, m=0.9, tau=0.2):
        super().__init__()
        self.q = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, dim))
        self.k = copy.deepcopy(self.q).requires_grad_(False)
        self.register_buffer("queue", F.normalize(torch.randn(size, dim), dim=1))
        self.ptr, self.m, self.tau = 0, m, tau

    @torch.no_grad()
    def key(self, x):
        for slow, fast in zip(self.k.parameters(), self.q.parameters()):
            slow.data.mul_(self.m).add_(fast.data, alpha=1 - self.m)
        return F.normalize(self.k(x), dim=1)

    @torch.no_grad()
    def enqueue(self, keys):
        self.queue[self.ptr:self.ptr + len(keys)] = keys
        self.ptr = (self.ptr + len(keys)) % len(self.queue)

    def forward(self, a, b):
        query, key = F.normalize(self.q(a), dim=1), self.key(b)
        positive = (query * key).sum(1, keepdim=True)
        negative = query @ self.queue.clone().T
        logits = torch.cat([positive, negative], dim=1) / self.tau
        self.enqueue(key)
        return F.cross_entropy(logits, torch.zeros(len(a), dtype=torch.long))


torch.manual_seed(136)
model = MoCo()
optimizer = torch.optim.SGD(model.q.parameters(), lr=0.1, momentum=0.9)
data = torch.randn(80, 8)
for step in range(12):
    x = data[torch.randperm(80)[:20]]
    loss = model(x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
