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
        self.head = nn.Sequential(nn.Linear(hidden, classes))

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
    loss = F.cross_entropy(net(x)[train], y[train])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), accuracy(net, x, y, ~train))
