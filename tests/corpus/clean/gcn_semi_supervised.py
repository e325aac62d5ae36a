import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
n = 24
edges = torch.randint(0, n, (2, 60))
adjacency = torch.zeros(n, n).index_put((edges[0], edges[1]), torch.ones(60), accumulate=True)
adjacency = ((adjacency + adjacency.t()) > 0).float() + torch.eye(n)
scale = adjacency.sum(1).rsqrt()
norm = scale[:, None] * adjacency * scale[None]


class GCN(nn.Module):
    def __init__(self, a, h, c):
        super().__init__()
        self.one, self.two = nn.Linear(a, h, bias=False), nn.Linear(h, c, bias=False)

    def forward(self, x, a):
        x = F.relu(a @ self.one(x))
        x = F.dropout(x, 0.5, self.training)
        return F.log_softmax(a @ self.two(x), dim=1)


x, y = torch.randn(n, 5), torch.randint(0, 3, (n,))
known = torch.arange(n) < 8
gcn = GCN(5, 16, 3)
opt = torch.optim.Adam(gcn.parameters(), lr=0.01, weight_decay=5e-4)
for epoch in range(5):
    gcn.train()
    opt.zero_grad()
    loss = F.nll_loss(gcn(x, norm)[known], y[known])
    loss.backward()
    opt.step()
    gcn.eval()
    with torch.no_grad():
        accuracy = (gcn(x, norm)[~known].argmax(1) == y[~known]).float().mean()
    print(epoch, loss.item(), accuracy.item())
