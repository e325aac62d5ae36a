import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(37)


class MoE(nn.Module):
    def __init__(self, dim=8, n=4):
        super().__init__()
        self.gate = nn.Linear(dim, n)
        self.experts = nn.ModuleList(nn.Linear(dim, dim) for _ in range(n))

    def forward(self, x):
        probs = self.gate(x).softmax(-1)
        weight, chosen = probs.max(-1)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            at = (chosen == i).nonzero().squeeze(1)
            out = out.index_add(0, at, expert(x[at]) * weight[at, None])
        fraction = F.one_hot(chosen, len(self.experts)).float().mean(0)
        balance = len(self.experts) * (fraction * probs.mean(0)).sum()
        return out, balance


moe, head = MoE(), nn.Linear(8, 1)
optimizer = torch.optim.Adam([*moe.parameters(), *head.parameters()], lr=3e-3)
for step in range(15):
    x = torch.randn(64, 8)
    h, balance = moe(x)
    loss = (head(x + h).squeeze(1) - x[:, 0].abs()).square().mean() + 0.01 * balance
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), balance.item())
