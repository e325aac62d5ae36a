import torch
from torch import nn

torch.manual_seed(54)


class Causal(nn.Module):
    def __init__(self, d=12):
        super().__init__()
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
        future = torch.ones(x.size(1), x.size(1), dtype=torch.bool).triu(1)
        return self.out(scores.masked_fill(future, float("-inf")).softmax(-1) @ v)


table, att, head = nn.Embedding(9, 12), Causal(), nn.Linear(12, 9)
opt = torch.optim.Adam([*table.parameters(), *att.parameters(), *head.parameters()], lr=1e-3)
for _ in range(5):
    ids = torch.randint(0, 9, (4, 8))
    logits = head(att(table(ids[:, :-1])))
    opt.zero_grad()
    nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()).backward()
    opt.step()
