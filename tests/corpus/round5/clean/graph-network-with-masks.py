import torch
from torch import nn

torch.manual_seed(36)
n = 60
y = torch.randint(0, 3, (n,))
x = nn.functional.one_hot(y, 3).float() * 0.5 + torch.randn(n, 3)
adj = ((y[:, None] == y[None]) & (torch.rand(n, n) < 0.15)).float()
adj = ((adj + adj.T + torch.eye(n)) > 0).float()
adj = adj / adj.sum(1, keepdim=True)
train = torch.zeros(n, dtype=torch.bool)
train[torch.randperm(n)[:30]] = True
l1, l2 = nn.Linear(3, 16), nn.Linear(16, 3)
optimizer = torch.optim.Adam([*l1.parameters(), *l2.parameters()], lr=1e-2, weight_decay=5e-4)


def net(dropout):
    h = torch.relu(adj @ l1(x))
    h = nn.functional.dropout(h, 0.3, training=dropout)
    return adj @ l2(h)


for epoch in range(20):
    logits = net(True)
    loss = nn.functional.cross_entropy(logits[train], y[train])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    print(loss.item(), (net(False).argmax(1) == y)[~train].float().mean().item())
