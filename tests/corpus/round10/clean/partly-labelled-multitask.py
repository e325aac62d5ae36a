import torch
from torch import nn


class AssayNet(nn.Module):
    def __init__(self, bits, tasks, hidden=40):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(bits, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU())
        self.heads = nn.ModuleList(nn.Linear(hidden, 1) for _ in range(tasks))
        self.log_var = nn.Parameter(torch.zeros(tasks))

    def forward(self, x):
        h = self.trunk(x)
        return torch.cat([head(h) for head in self.heads], -1)


def masked_mse(prediction, target):
    known = ~target.isnan()
    gap = torch.where(known, prediction - torch.where(known, target, 0.0), 0.0)
    return gap.square().sum(0) / known.sum(0).clamp(min=1)


def uncertainty_weighted(losses, log_var):
    return (losses * torch.exp(-log_var) + log_var).sum() / 2


class RateBalancer:
    def __init__(self, tasks, momentum=0.9):
        self.level = torch.ones(tasks)
        self.momentum = momentum

    def __call__(self, losses):
        self.level.mul_(self.momentum).add_(losses.detach(), alpha=1 - self.momentum)
        pace = losses.detach() / self.level
        return len(pace) * torch.softmax(pace, 0)


def assays(n, bits=24, tasks=3):
    x = (torch.rand(n, bits) < 0.3).float()
    y = x @ torch.randn(bits, tasks) * torch.tensor([1.0, 0.3, 0.6])
    y[torch.rand(n, tasks) < torch.tensor([0.1, 0.5, 0.8])] = float("nan")
    return x, y


torch.manual_seed(83)
x, y = assays(360)
model = AssayNet(24, 3)
balance = RateBalancer(3)
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(12):
    for rows in torch.randperm(len(x)).split(60):
        losses = masked_mse(model(x[rows]), y[rows])
        objective = uncertainty_weighted(balance(losses) * losses, model.log_var)
        optimizer.zero_grad()
        objective.backward()
        optimizer.step()
    if epoch % 3 == 2:
        print(epoch, [round(v, 4) for v in losses.tolist()], [round(v, 3) for v in model.log_var.tolist()])
