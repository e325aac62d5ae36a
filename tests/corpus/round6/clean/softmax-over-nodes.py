import torch
import torch.nn as nn


class Pool(nn.Module):
    def __init__(self, n_in=5, dim=12):
        super().__init__()
        self.lift, self.gate, self.out = nn.Linear(n_in, dim), nn.Linear(dim, 1), nn.Linear(dim, 1)

    def forward(self, adj, x):
        h = torch.relu(self.lift(adj @ x) + self.lift(x))
        weight = self.gate(h).softmax(dim=0)
        return self.out((weight * h).sum(0))


torch.manual_seed(28)
graphs = []
for _ in range(24):
    n = int(torch.randint(4, 9, ()))
    adj = (torch.rand(n, n) < 0.4).float().triu(1)
    adj = adj + adj.T
    graphs.append((adj, torch.randn(n, 5), adj.sum().view(1) / n))
net = Pool()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(4):
    for i in range(0, 24, 8):
        opt.zero_grad()
        for adj, x, y in graphs[i:i + 8]:
            loss = (net(adj, x) - y).pow(2).mean() / 8
            loss.backward()
        opt.step()
    print(epoch, 8 * loss.item())
