# /// case
# title = "The derivative in the residual is taken with retain_graph where create_graph is needed"
# category = "higher-order"
# kind = "missing-create-graph"
# kinds_also_ok = ["retain-graph-instead-of-create-graph", "derivative-not-differentiable", "first-order-grad-detached"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["retain_graph", "create_graph", "rate"]
# symptom = "the equation is not fulfilled and the identified rates are biased: the derivatives count as constants"
# symptom_check = "not rate(net(times)[:, 1], times).requires_grad"
# cause = "Without create_graph the result of autograd.grad has no graph, so the residual cannot change the slope of the network."
# fix = "create_graph=True"
# ///
import torch
from torch import nn

DOSE = 1.0


def simulate(t, ka=1.5, ke=0.4):
    gut = DOSE * torch.exp(-ka * t)
    plasma = DOSE * ka / (ka - ke) * (torch.exp(-ke * t) - torch.exp(-ka * t))
    return torch.stack([gut, plasma], -1)


def rate(column, t):
    return torch.autograd.grad(column.sum(), t, retain_graph=True)[0].squeeze(-1)  #- here
#+     return torch.autograd.grad(column.sum(), t, create_graph=True)[0].squeeze(-1)


def residuals(net, log_rates, t):
    amounts = net(t)
    ka, ke = log_rates.exp()
    gut = rate(amounts[:, 0], t) + ka * amounts[:, 0]  #! also
    plasma = rate(amounts[:, 1], t) - ka * amounts[:, 0] + ke * amounts[:, 1]  #! also
    return gut, plasma


torch.manual_seed(17)
net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 2))
log_rates = nn.Parameter(torch.zeros(2))
optimizer = torch.optim.Adam([
    {"params": net.parameters(), "lr": 5e-3},
    {"params": [log_rates], "lr": 2e-2},
])

sample_times = torch.linspace(0.25, 6.0, 10)
sampled = simulate(sample_times)[:, 1] + 0.01 * torch.randn(10)
times = torch.linspace(0.0, 6.0, 40).unsqueeze(-1).requires_grad_()
start = torch.tensor([DOSE, 0.0])

losses = []
for it in range(300):
    optimizer.zero_grad()
    gut, plasma = residuals(net, log_rates, times)
    physics = gut.square().mean() + plasma.square().mean()
    data = (net(sample_times.unsqueeze(-1))[:, 1] - sampled).square().mean()
    initial = (net(torch.zeros(1, 1))[0] - start).square().sum()
    loss = physics + 5 * data + 5 * initial
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

print("loss", round(losses[0], 4), "->", round(losses[-1], 5))
print("ka, ke:", [round(v, 3) for v in log_rates.exp().tolist()])
