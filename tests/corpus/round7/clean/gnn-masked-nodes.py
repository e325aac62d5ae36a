import torch
import torch.nn as nn
import torch.nn.functional as F


class SageLayer(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.own, self.neighbour = nn.Linear(n_in, n_out), nn.Linear(n_in, n_out, bias=False)

    def forward(self, x, edges):
        src, dst = edges
        summed = torch.zeros_like(x).index_add_(0, dst, x[src])
        degree = torch.zeros(len(x)).index_add_(0, dst, torch.ones(len(dst))).clamp_(min=1)
        return self.own(x) + self.neighbour(summed / degree.unsqueeze(1))


class Sage(nn.Module):
    def __init__(self, dims):
        super().__init__()
        self.layers = nn.ModuleList(SageLayer(a, b) for a, b in zip(dims, dims[1:]))

    def forward(self, x, edges):
        for layer in self.layers[:-1]:
            x = F.dropout(F.relu(layer(x, edges), inplace=True), 0.2, training=self.training)
        return self.layers[-1](x, edges)


torch.manual_seed(122)
n = 80
y = torch.arange(n) % 4
x = F.one_hot(y, 6).float() + torch.randn(n, 6)
edges = torch.randint(0, n, (2, 400))
edges = edges[:, (y[edges[0]] == y[edges[1]]) | (torch.rand(400) < 0.2)]
train = torch.rand(n) < 0.5
model = Sage([6, 16, 4])
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=5e-4)
for epoch in range(15):
    model.train()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x, edges)[train], y[train])
    loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    print(loss.item(), (model(x, edges).argmax(1) == y)[~train].float().mean().item())
