import torch
import torch.nn as nn


def laplace(u, x):
    """u: (n, 1), x: (n, d)"""
    g = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
    rows = [torch.autograd.grad(g[:, i].sum(), x, create_graph=True)[0][:, i] for i in range(x.shape[1])]
    return sum(rows).unsqueeze(1)


class Field(nn.Module):
    def __init__(self, dim=2):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(dim, 32), nn.Softplus(), nn.Linear(32, 32), nn.Softplus(), nn.Linear(32, 1, bias=False))

    def forward(self, x):
        return self.layers(x)


torch.manual_seed(7)
field = Field()
optimizer = torch.optim.Adam(field.parameters(), lr=1e-3)
for step in range(20):
    x = torch.rand(50, 2, requires_grad=True)
    u = field(x)
    source = 2 * torch.exp(-x.pow(2).sum(1, keepdim=True))
    loss = (laplace(u, x) - source.detach()).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
