# /// case
# title = "The loss is over all nodes of the graph"
# category = "data"
# kind = "test-labels-in-training"
# kinds_also_ok = ["missing-mask", "data-leak"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["train_mask", "loss"]
# symptom = "labels of test nodes train the network"
# symptom_check = "test_reach > 0"
# cause = "the training mask is not applied in the loss"
# fix = "mask logits and labels"
# evidence = [
#     { url = "https://github.com/awslabs/realtime-fraud-detection-with-gnn-on-dgl/pull/728", title = "fix: mask-out test labels during gradient updates in training loop" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class GCNLayer(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.lin = nn.Linear(i, o)

    def forward(self, x, edges, norm):
        src, dst = edges
        messages = self.lin(x)[src] * norm[:, None]
        return torch.zeros(len(x), messages.shape[1]).index_add(0, dst, messages)


class FraudGNN(nn.Module):
    def __init__(self, n_in, hidden=16):
        super().__init__()
        self.c1, self.c2 = GCNLayer(n_in, hidden), GCNLayer(hidden, 2)

    def forward(self, x, edges, norm):
        h = F.dropout(torch.relu(self.c1(x, edges, norm)), 0.2, self.training)
        return self.c2(h, edges, norm)


def build_graph(n=150, extra=500):
    y = (torch.rand(n) < 0.2).long()
    src = torch.randint(0, n, (extra,))
    same = torch.stack([(y == y[s]).float() + 0.1 for s in src])
    dst = torch.multinomial(same, 1).squeeze(1)
    loops = torch.arange(n)
    edges = torch.stack([torch.cat([src, dst, loops]), torch.cat([dst, src, loops])])
    deg = torch.bincount(edges[1], minlength=n).float()
    norm = (deg[edges[0]] * deg[edges[1]]).rsqrt()
    return torch.randn(n, 6) + y[:, None] * 0.5, edges, norm, y


torch.manual_seed(47)
x, edges, norm, labels = build_graph()
train_mask = torch.rand(len(x)) < 0.6
test_mask = ~train_mask
model = FraudGNN(6)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=5e-4)
weight = torch.tensor([1.0, 4.0])
for epoch in range(12):
    model.train()
    logits = model(x, edges, norm)
    logits.retain_grad()
    loss = F.cross_entropy(logits, labels, weight=weight)  #- here
#+     loss = F.cross_entropy(logits[train_mask], labels[train_mask], weight=weight)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        pred = model(x, edges, norm).argmax(1)
    recall = (pred[test_mask & (labels == 1)] == 1).float().mean()  #! also
test_reach = logits.grad[test_mask].abs().sum().item()
print(loss.item(), recall.item())
