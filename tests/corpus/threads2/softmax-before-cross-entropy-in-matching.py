# /// case
# title = "Node matching is softmaxed before cross entropy"
# category = "loss"
# kind = "double-softmax"
# severity = "warning"
# names = ["softmax", "similarity", "CrossEntropyLoss"]
# symptom = "the loss cannot fall below log(n) by much"
# symptom_check = "torch.allclose(scores.sum(-1), torch.ones(4, 8), atol=1e-4)"
# cause = "CrossEntropyLoss applies softmax itself"
# fix = "return the raw scores"
# evidence = [
#     { url = "https://github.com/mlelarge/graph_neural_net/pull/37", title = "Fix bug softmax" },
#     { url = "https://github.com/ariecattan/SciCo/issues/2", title = "Double-softmax in validation loss" },
# ]
# ///
import torch
import torch.nn as nn


class SiameseGNN(nn.Module):
    def __init__(self, width=12, blocks=2):
        super().__init__()
        self.first = nn.Linear(1, width)
        self.own = nn.ModuleList(nn.Linear(width, width) for _ in range(blocks))
        self.near = nn.ModuleList(nn.Linear(width, width) for _ in range(blocks))

    def embed(self, adj):
        h = self.first(adj.sum(-1, keepdim=True))
        for own, near in zip(self.own, self.near):
            h = torch.relu(own(h) + near(adj @ h) / adj.shape[-1])
        return h

    def forward(self, g1, g2):
        return torch.softmax(self.embed(g1) @ self.embed(g2).transpose(1, 2), dim=-1)  #- here
#+         return self.embed(g1) @ self.embed(g2).transpose(1, 2)


class Matching(nn.Module):
    def __init__(self):
        super().__init__()
        self.loss = nn.CrossEntropyLoss(reduction="mean")

    def forward(self, raw_scores):
        b, n, _ = raw_scores.shape
        truth = torch.arange(n).expand(b, n).flatten()
        return self.loss(raw_scores.flatten(0, 1), truth)  #! also


def graph_pairs(batch, n, noise=0.05):
    a = (torch.rand(batch, n, n) < 0.4).float().triu(1)
    flip = (torch.rand_like(a) < noise).float().triu(1)
    b = (a + flip) % 2
    return a + a.transpose(1, 2), b + b.transpose(1, 2)


torch.manual_seed(70)
model, criterion = SiameseGNN(), Matching()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for it in range(8):
    scores = model(*graph_pairs(4, 8))
    loss = criterion(scores)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
