# /// case
# title = "Graph convolution: degree ** -0.5 of an isolated node is inf"
# category = "numerics"
# kind = "nonfinite-gradient"
# severity = "warning"
# names = ["inv_sqrt"]
# difficulty = "hard"
# symptom = "silent: inf * 0 gives NaN; loss and parameters become NaN"
# symptom_check = "not all(torch.isfinite(p).all() for p in gcn.parameters())"
# cause = "no self-loops, node without edges"
# fix = "self-loops / masked inverse"
# evidence = [
#     { url = "https://github.com/BorealisAI/SLAPS-GNN/issues/3" },
#     { url = "https://github.com/pyg-team/pytorch_geometric/issues/61" },
#     { url = "https://github.com/mlx-graphs/mlx-graphs/pull/18" },
# ]
# ///
"""Node classification with a two-layer graph convolution."""
import torch
import torch.nn.functional as F
from torch import nn


def random_graph(n, p, generator):
    upper = torch.triu(torch.rand(n, n, generator=generator) < p, diagonal=1)
    adj = (upper | upper.t()).float()
    adj[3, :] = 0.0
    adj[:, 3] = 0.0
    return adj


def normalise(adj):
#+     adj = adj + torch.eye(adj.size(0))
    degree = adj.sum(1)
    inv_sqrt = degree.pow(-0.5)  #! here
    return inv_sqrt[:, None] * adj * inv_sqrt[None, :]  #! also


class GraphConv(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.lin = nn.Linear(d_in, d_out, bias=False)
        self.bias = nn.Parameter(torch.zeros(d_out))

    def forward(self, x, prop):
        return prop @ self.lin(x) + self.bias


class GCN(nn.Module):
    def __init__(self, d_in, hidden, classes, drop=0.2):
        super().__init__()
        self.first = GraphConv(d_in, hidden)
        self.second = GraphConv(hidden, classes)
        self.drop = nn.Dropout(drop)

    def forward(self, x, prop):
        h = F.relu(self.first(x, prop))
        return self.second(self.drop(h), prop)


def accuracy(logits, labels, mask):
    return (logits[mask].argmax(1) == labels[mask]).float().mean().item()


gen = torch.Generator().manual_seed(2)
torch.manual_seed(2)
N, D, C = 30, 10, 3
adj = random_graph(N, 0.15, gen)
labels = torch.randint(0, C, (N,), generator=gen)
feats = torch.randn(N, D, generator=gen) + F.one_hot(labels, D).float() * 2
train_mask = torch.arange(N) < 20
prop = normalise(adj)

gcn = GCN(D, 16, C)
opt = torch.optim.Adam(gcn.parameters(), lr=1e-2, weight_decay=5e-4)
for epoch in range(20):
    gcn.train()
    opt.zero_grad()
    logits = gcn(feats, prop)
    loss = F.cross_entropy(logits[train_mask], labels[train_mask])
    loss.backward()
    opt.step()
    if epoch % 5 == 0:
        gcn.eval()
        with torch.no_grad():
            out = gcn(feats, prop)
        print(epoch, loss.item(), accuracy(out, labels, ~train_mask))
