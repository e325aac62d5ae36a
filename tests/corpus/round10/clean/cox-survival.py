import torch
from torch import nn


class PartialLikelihood(nn.Module):
    def forward(self, risk, time, event):
        order = time.argsort(descending=True)
        risk, event = risk[order], event[order]
        at_risk = torch.logcumsumexp(risk, 0)
        return -((risk - at_risk) * event).sum() / event.sum().clamp(min=1)


@torch.no_grad()
def concordance(risk, time, event):
    comparable = (time[:, None] < time[None]) & event[:, None].bool()
    return ((risk[:, None] > risk[None]) & comparable).sum().item() / comparable.sum().item()


def trial(n, genes=12):
    x = torch.randn(n, genes)
    hazard = torch.exp(0.9 * x[:, 0] - 0.7 * x[:, 1])
    death = torch.distributions.Exponential(hazard).sample()
    censoring = torch.distributions.Exponential(torch.full((n,), 0.4)).sample()
    return x, torch.minimum(death, censoring), (death <= censoring).float()


def lasso(layer, step, strength):
    with torch.no_grad():
        layer.weight.copy_(layer.weight.sign() * (layer.weight.abs() - step * strength).clamp(min=0))


torch.manual_seed(70)
x, time, event = trial(300)
train, test = slice(0, 220), slice(220, 300)
network = nn.Sequential(nn.Linear(12, 16, bias=False), nn.Tanh(), nn.Linear(16, 1, bias=False))
criterion = PartialLikelihood()
optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.8)
partial = []
for epoch in range(60):
    network.zero_grad()
    loss = criterion(network(x[train]).squeeze(-1), time[train], event[train])
    loss.backward()
    optimizer.step()
    lasso(network[0], step=0.1, strength=0.02)
    partial.append(loss.item())
with torch.no_grad():
    risk = network(x[test]).squeeze(-1)
print(f"{partial[0]:.3f} -> {partial[-1]:.3f}, concordance {concordance(risk, time[test], event[test]):.3f}")
