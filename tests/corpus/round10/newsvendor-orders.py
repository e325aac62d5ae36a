# /// case
# title = "The backward of the custom cost ignores the incoming gradient"
# category = "function"
# kind = "grad-output-ignored"
# kinds_also_ok = ["backward-without-chain-rule", "custom-backward-wrong", "missing-grad-output-factor"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["backward", "grad_cost", "slope"]
# symptom = "the importance of the stores and any other factor of the loss has no effect on the gradient"
# symptom_check = "(lambda order: bool(torch.autograd.grad((0 * NewsvendorCost.apply(order, demand, 4.0, 1.0)).sum(), order)[0].abs().sum() > 0))(policy(features).squeeze(-1))"
# cause = "backward returns the local derivative without multiplying it with grad_cost."
# fix = "multiply with grad_cost"
# ///
import torch
from torch import nn


class NewsvendorCost(torch.autograd.Function):
    @staticmethod
    def forward(ctx, order, demand, under, over):
        gap = demand - order
        ctx.save_for_backward(gap)
        ctx.under, ctx.over = under, over
        return torch.where(gap > 0, under * gap, -over * gap)

    @staticmethod
    def backward(ctx, grad_cost):  #! also
        (gap,) = ctx.saved_tensors
        slope = torch.where(gap > 0, -ctx.under, ctx.over)  #! also
        return slope, None, None, None  #- here
#+         return grad_cost * slope, None, None, None


class OrderPolicy(nn.Sequential):
    def __init__(self, features, hidden=24):
        super().__init__(nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, 1))


def stores(n, features=5):
    x = torch.randn(n, features)
    demand = 5 + 1.5 * x[:, 0] - x[:, 1].abs() + 0.5 * torch.randn(n)
    importance = torch.where(torch.rand(n) < 0.2, 5.0, 0.5)
    return x, demand, importance


torch.manual_seed(44)
features, demand, importance = stores(400)
policy = OrderPolicy(5)
optimizer = torch.optim.Adam(policy.parameters(), lr=0.02)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=2)

weekly = []
for week in range(15):
    total = 0.0
    for rows in torch.randperm(400).split(50):
        optimizer.zero_grad()
        order = policy(features[rows]).squeeze(-1)
        cost = NewsvendorCost.apply(order, demand[rows], 4.0, 1.0)
        loss = (importance[rows] * cost).sum() / importance[rows].sum()  #! also
        loss.backward()
        optimizer.step()
        total += loss.item() / 8
    plateau.step(total)
    weekly.append(total)
print(" ".join(f"{value:.3f}" for value in weekly))
