# /// case
# title = "Graph layers in a Python list"
# category = "optimizer"
# kind = "module-not-registered"
# kinds_also_ok = ["parameters-not-in-optimizer"]
# severity = "warning"
# names = ["layers", "list"]
# symptom = "the graph layers never change; only the two linear layers train"
# symptom_check = "all(same for same, _ in results)"
# cause = "a list does not register modules"
# fix = "nn.ModuleList"
# evidence = [
#     { url = "https://github.com/qbxlvnf11/graph-neural-networks-for-graph-classification/pull/3", title = "Modifying way of store layers" },
#     { url = "https://github.com/pyg-team/pytorch_geometric/issues/7478", title = "The testcase from \"Introduction by Example\" breaks when GCNConv aren't set to be attributes of GCN" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class GCNLayer(nn.Module):
    def __init__(self, d_in, d_out, dropout=0.1):
        super().__init__()
        self.lin = nn.Linear(d_in, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, adj):
        deg = adj.sum(-1, keepdim=True).clamp_min(1)
        return F.relu(self.lin(self.dropout(adj @ x / deg)))


class GraphClassifier(nn.Module):
    def __init__(self, n_feat, n_class, n_layer=2, agg_hidden=16, fc_hidden=16):
        super().__init__()
        self.layers = []  #- here
#+         self.layers = nn.ModuleList()
        for i in range(n_layer):
            self.layers.append(GCNLayer(n_feat if i == 0 else agg_hidden, agg_hidden))  #! here
        self.fc1 = nn.Linear(agg_hidden, fc_hidden)
        self.fc2 = nn.Linear(fc_hidden, n_class)

    def forward(self, x, adj):
        for layer in self.layers:
            x = layer(x, adj)
        readout = x.mean(1)
        return F.log_softmax(self.fc2(F.relu(self.fc1(readout))), dim=-1)


def run_fold(fold_id, epochs=4):
    torch.manual_seed(fold_id)
    model = GraphClassifier(5, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)  #! also
    first = model.layers[0].lin.weight.detach().clone()
    for epoch in range(epochs):
        x = torch.randn(12, 7, 5)
        adj = ((torch.rand(12, 7, 7) < 0.4).float() + torch.eye(7)).clamp(max=1)
        y = (adj.sum((1, 2)) > 24).long()
        loss = F.nll_loss(model(x, adj), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return torch.equal(first, model.layers[0].lin.weight), loss.item()


results = [run_fold(f) for f in range(3)]
print(results)
