import torch
from torch import nn

torch.manual_seed(54)


class PooledAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.query, self.key, self.value = nn.Parameter(torch.randn(dim)), nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x, valid):
        score = self.key(x) @ self.query / x.shape[-1] ** 0.5
        empty = ~valid.any(1, keepdim=True)
        score = score.masked_fill(~(valid | empty), float("-inf"))
        pooled = (score.softmax(1)[..., None] * self.value(x)).sum(1)
        return pooled.masked_fill(empty, 0.0)


pool, head = PooledAttention(10), nn.Linear(10, 2)
optimizer = torch.optim.Adam([*pool.parameters(), *head.parameters()], lr=5e-3)
for step in range(12):
    x = torch.randn(16, 6, 10)
    valid = torch.arange(6) < torch.randint(0, 7, (16, 1))
    y = (x[:, 0, 0] > 0).long()
    loss = nn.functional.cross_entropy(head(pool(x, valid)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
