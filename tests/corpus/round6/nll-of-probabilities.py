# /// case
# title = "nll_loss gets probabilities"
# category = "loss"
# kind = "nll-of-probabilities"
# kinds_also_ok = ["missing-log", "wrong-loss-operand"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["nll_loss", "softmax"]
# symptom = "the loss is negative; gradients vanish for rows that are wrong"
# symptom_check = "loss.item() < 0"
# cause = "nll_loss takes log-probabilities"
# fix = "log_softmax"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class GCN(nn.Module):
    def __init__(self, n_in, n_hidden, n_out):
        super().__init__()
        self.w1, self.w2 = nn.Linear(n_in, n_hidden), nn.Linear(n_hidden, n_out)

    def forward(self, a, x):
        h = F.dropout(torch.relu(a @ self.w1(x)), 0.3, self.training)
        return F.softmax(a @ self.w2(h), dim=1)  #- here
#+         return F.log_softmax(a @ self.w2(h), dim=1)


def normalize(adj):
    adj = ((adj + adj.T + torch.eye(len(adj))) > 0).float()
    d = adj.sum(1).rsqrt()
    return d[:, None] * adj * d


torch.manual_seed(24)
n = 60
group = torch.arange(n) % 3
adj = normalize((torch.rand(n, n) < torch.where(group[:, None] == group, 0.2, 0.02)).float())
x = torch.randn(n, 5) + F.one_hot(group, 5)
train_rows = torch.randperm(n)[:30]
model = GCN(5, 16, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for epoch in range(30):
    model.train()
    optimizer.zero_grad()
    loss = F.nll_loss(model(adj, x)[train_rows], group[train_rows])  #! also
    loss.backward()
    optimizer.step()
print(loss.item())
