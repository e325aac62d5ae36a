# /// case
# title = "The Laplacian sums the mixed derivatives too"
# category = "higher-order"
# kind = "wrong-second-derivative"
# kinds_also_ok = ["summed-hessian", "experiment"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["laplace", "g.sum"]
# symptom = "the operator is not the Laplacian"
# symptom_check = "(lambda q: abs(laplace(field(q), q).item() - torch.trace(torch.autograd.functional.hessian(lambda v: field(v).sum(), q)[0, :, 0, :]).item()) > 1e-4)(torch.tensor([[0.2, 0.7]], requires_grad=True))"
# cause = "the gradient of the sum of the components holds the mixed derivatives"
# fix = "differentiate each component and take its own second derivative"
# ///
import torch
import torch.nn as nn


def laplace(u, x):
    """u: (n, 1), x: (n, d)"""
    g = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
    h = torch.autograd.grad(g.sum(), x, create_graph=True)[0]  #- here
    return h.sum(1, keepdim=True)  #- also
#+     rows = [torch.autograd.grad(g[:, i].sum(), x, create_graph=True)[0][:, i] for i in range(x.shape[1])]
#+     return sum(rows).unsqueeze(1)


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
