# /// case
# title = "The root of squared distances is taken at zero on the diagonal"
# category = "numerics"
# kind = "sqrt-at-zero"
# kinds_also_ok = ["nan-gradient", "infinite-derivative"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["sqrt", "pairwise", "distance"]
# symptom = "the parameters are NaN after the first step"
# symptom_check = "any(p.isnan().any().item() for p in embed.parameters())"
# cause = "the derivative of sqrt at zero is infinite, times zero gives NaN"
# fix = "add a small number below the root"
# ///
import torch
import torch.nn as nn


def pairwise(z):
    difference = z.unsqueeze(0) - z.unsqueeze(1)
    return difference.square().sum(dim=-1).sqrt()  #- here
#+     return (difference.square().sum(dim=-1) + 1e-9).sqrt()


def stress(wanted, z):
    return (pairwise(z) - wanted).square().mean()  #! also


class Projector(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_in, 20), nn.SELU(), nn.Linear(20, n_out))

    def forward(self, x):
        return self.net(x)


torch.manual_seed(85)
points = torch.randn(30, 6)
with torch.no_grad():
    wanted = torch.cdist(points, points)
embed = Projector(6, 2)
optimizer = torch.optim.Adam(embed.parameters(), lr=1e-2)
trace = []
for iteration in range(12):
    subset = torch.randperm(30)[:15]
    loss = stress(wanted[subset][:, subset], embed(points[subset]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    trace.append(loss.item())
print(trace[0], trace[-1])
