# /// case
# title = "The classifier ends in a softmax and is trained by cross_entropy"
# category = "loss"
# kind = "double-softmax"
# kinds_also_ok = ["softmax-before-cross-entropy", "probabilities-as-logits"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["Softmax", "cross_entropy"]
# symptom = "the outputs are probabilities, and the softmax is applied twice"
# symptom_check = "bool(torch.allclose(net(x[:8]).sum(1), torch.ones(8), atol=1e-4))"
# cause = "cross_entropy takes logits and applies log_softmax itself, while the head already gives probabilities."
# fix = "give logits, and apply softmax for the report only"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class GraphConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.own, self.near = nn.Linear(inputs, outputs), nn.Linear(inputs, outputs, bias=False)

    def forward(self, x, adjacency):
        degree = adjacency.sum(1, keepdim=True).clamp(min=1)
        return self.own(x) + self.near(adjacency @ x / degree)


class NodeClassifier(nn.Module):
    def __init__(self, adjacency, inputs, classes, hidden=16):
        super().__init__()
        self.register_buffer("adjacency", adjacency)
        self.first, self.second = GraphConv(inputs, hidden), GraphConv(hidden, hidden)
        self.head = nn.Sequential(nn.Linear(hidden, classes), nn.Softmax(dim=-1))  #- here
#+         self.head = nn.Sequential(nn.Linear(hidden, classes))

    def forward(self, x):
        x = F.relu(self.first(x, self.adjacency[:len(x), :len(x)]))
        x = F.relu(self.second(x, self.adjacency[:len(x), :len(x)]))
        return self.head(x)


def accuracy(net, x, y, mask):
    with torch.no_grad():
        return (net(x).argmax(1) == y)[mask].float().mean().item()


torch.manual_seed(2)
y = torch.arange(60) % 3
same = (y[:, None] == y[None, :]).float()
adjacency = (torch.rand(60, 60) < 0.02 + 0.25 * same).float()
adjacency = ((adjacency + adjacency.T) > 0).float()
x = F.one_hot(y, 3).float() @ torch.randn(3, 8) + torch.randn(60, 8)
train = torch.rand(60) < 0.5
net = NodeClassifier(adjacency, 8, 3)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, weight_decay=5e-4)
for epoch in range(25):
    loss = F.cross_entropy(net(x)[train], y[train])  #! here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), accuracy(net, x, y, ~train))
