import torch
import torch.nn as nn
import torch.nn.functional as F


class Switch(nn.Module):
    def __init__(self, dim=8, n=4):
        super().__init__()
        self.gate = nn.Linear(dim, n)
        self.experts = nn.ModuleList(nn.Linear(dim, dim) for _ in range(n))

    def forward(self, x):
        p = self.gate(x).softmax(-1)
        top, which = p.max(-1)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            rows = (which == i).nonzero().squeeze(1)
            out = out.index_add(0, rows, top[rows, None] * expert(x[rows]))
        share = F.one_hot(which, p.shape[1]).float().mean(0)
        return x + out, p.shape[1] * (share * p.mean(0)).sum()


torch.manual_seed(1)
layer, head = Switch(), nn.Linear(8, 3)
opt = torch.optim.Adam([*layer.parameters(), *head.parameters()], lr=1e-3)
x = torch.randn(100, 8)
y = x[:, :3].argmax(1)
for _ in range(5):
    h, balance = layer(x)
    loss = F.cross_entropy(head(h), y) + 0.01 * balance
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item(), balance.item())
