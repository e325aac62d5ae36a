"""BP503 nonfinite-masked-branch."""

PROGRAMS = {
    "the root has a statement of its own": """
import torch
from torch import nn
torch.manual_seed(0)

net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def distances(z):
    squared = (z[:, None] - z[None]).pow(2).sum(-1)
    return squared.sqrt()  # <- BP503
for x in torch.randn(3, 6, 4):
    apart = distances(net(x)).masked_fill(torch.eye(6, dtype=torch.bool), 0.0)
    loss = apart.mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}
