# /// case
# title = "NLLLoss receives probabilities instead of log-probabilities"
# category = "loss-wiring"
# kind = "nll-input-not-log"
# severity = "warning"
# severity_by_writer = "error"
# names = ["probs", "nll_loss", "softmax"]
# difficulty = "medium"
# symptom = "Loss is negative from the first step and the gradient vanishes as the model gets confident; silent."
# symptom_check = "history[0] < 0 and history[-1] < 0"
# cause = "F.nll_loss expects log-probabilities; the model returns softmax, so the loss is -p instead of -log p."
# fix = "Use log_softmax in the model."
# evidence = [{ url = "https://runebook.dev/en/docs/pytorch/generated/torch.nn.softmax" }, { url = "https://github.com/Lightning-Universe/lightning-bolts/issues/654" }]
# ///
"""Two-layer graph convolution on a small community graph, semi-supervised."""
import torch
import torch.nn.functional as F
from torch import nn


def community_graph(n_per, k, p_in, p_out, gen):
    n = n_per * k
    block = torch.arange(n) // n_per
    prob = torch.where(block[:, None] == block[None], p_in, p_out)
    upper = torch.triu(torch.rand(n, n, generator=gen) < prob, 1)
    adj = (upper | upper.T).float() + torch.eye(n)
    deg = adj.sum(1)
    return adj / (deg[:, None] * deg[None]).sqrt(), block


class GCN(nn.Module):
    def __init__(self, n_in, hidden, classes):
        super().__init__()
        self.w1 = nn.Linear(n_in, hidden)
        self.w2 = nn.Linear(hidden, classes)
        self.drop = nn.Dropout(0.2)

    def forward(self, adj, x):
        h = self.drop(F.relu(adj @ self.w1(x)))
        return F.softmax(adj @ self.w2(h), dim=1)  #- here
#+         return F.log_softmax(adj @ self.w2(h), dim=1)


gen = torch.Generator().manual_seed(3)
torch.manual_seed(3)
adj, labels = community_graph(20, 4, 0.4, 0.03, gen)
features = torch.randn(80, 12, generator=gen) + F.one_hot(labels, 12)
train = torch.zeros(80, dtype=torch.bool)
train[torch.randperm(80, generator=gen)[:24]] = True

net = GCN(12, 16, 4)
optimizer = torch.optim.Adam(net.parameters(), lr=0.02, weight_decay=5e-4)
history = []
for epoch in range(40):
    net.train()
    probs = net(adj, features)  #! also
    loss = F.nll_loss(probs[train], labels[train])  #! here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
net.eval()
with torch.no_grad():
    acc = (net(adj, features).argmax(1) == labels)[~train].float().mean()
print(history[0], history[-1], "acc", acc.item())
