import torch
import torch.nn as nn
import torch.nn.functional as F


class Switch(nn.Module):
    def __init__(self, dim=8, experts=3):
        super().__init__()
        self.router = nn.Linear(dim, experts)
        self.experts = nn.ModuleList(nn.Linear(dim, dim) for _ in range(experts))

    def forward(self, x):
        probs = self.router(x).softmax(-1)
        top, index = probs.max(-1)
        hard = F.one_hot(index, probs.shape[-1]).float()
        out = sum(hard[:, e : e + 1] * expert(x) for e, expert in enumerate(self.experts))
        balance = probs.shape[-1] * (hard.mean(0) * probs.mean(0)).sum()
        return x + top.unsqueeze(1) * out, balance


torch.manual_seed(3)
layer, head = Switch(), nn.Linear(8, 5)
optimizer = torch.optim.Adam([*layer.parameters(), *head.parameters()], lr=1e-2)
for step in range(6):
    x, y = torch.randn(48, 8), torch.randint(0, 5, (48,))
    hidden, balance = layer(x)
    loss = F.cross_entropy(head(hidden), y) + 0.01 * balance
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), balance.item())
