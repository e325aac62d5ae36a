# /// case
# title = "The slope penalty is computed without create_graph"
# category = "higher-order"
# kind = "missing-create-graph"
# kinds_also_ok = ["gradient-penalty-without-create-graph", "penalty-without-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["gradient", "create_graph", "penalty"]
# symptom = "the penalty has no effect on the weights"
# symptom_check = "not trainer.constraint.penalty(trainer.model, x).requires_grad"
# cause = "Without create_graph=True the slope is a constant for the outer backward."
# fix = "create_graph=True"
# ///
from dataclasses import dataclass

import torch
from torch import nn
import torch.nn.functional as F

PRICE, PROMO = 0, 1


@dataclass
class ElasticityConfig:
    features: int = 6
    hidden: int = 24
    slope_weight: float = 8.0
    lr: float = 5e-3
    epochs: int = 25
    batch_size: int = 50


class DemandModel(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(features, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 1)
        )

    def forward(self, x):
        return self.net(x).squeeze(-1)


class SlopeConstraint:
    """Demand must fall with the price and rise with a promotion."""

    signs = {PRICE: -1.0, PROMO: 1.0}

    def __init__(self, low=-2.5, high=2.5):
        self.low, self.high = low, high

    def probes(self, x):
        anchor = x.clone()
        for column in self.signs:
            anchor[:, column] = torch.empty(len(x)).uniform_(self.low, self.high)
        return anchor.requires_grad_()

    def slopes(self, model, x):
        probe = self.probes(x)
        gradient, = torch.autograd.grad(model(probe).sum(), probe)  #- here
#+         gradient, = torch.autograd.grad(model(probe).sum(), probe, create_graph=True)
        return torch.stack([sign * gradient[:, column] for column, sign in self.signs.items()], dim=1)

    def penalty(self, model, x):
        return F.relu(-self.slopes(model, x)).square().sum(dim=1).mean()  #! also

    def violations(self, model, x):
        return self.slopes(model, x).lt(0).float().mean().item()


def sales(count, features):
    x = torch.randn(count, features)
    base = 2.0 - 0.8 * x[:, PRICE] + 0.2 * x[:, PROMO] + 0.6 * x[:, 2]
    return x, base + 0.9 * torch.randn(count)


class PricingTrainer:
    def __init__(self, config):
        self.config = config
        self.model = DemandModel(config.features, config.hidden)
        self.constraint = SlopeConstraint()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=config.lr)

    def step(self, x, y):
        fit = F.mse_loss(self.model(x), y)
        penalty = self.constraint.penalty(self.model, x)  #! also
        loss = fit + self.config.slope_weight * penalty  #! also
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return fit.item(), penalty.item()

    def run(self, x, y):
        for epoch in range(self.config.epochs):
            rows = torch.randperm(len(y)).split(self.config.batch_size)
            values = torch.tensor([self.step(x[r], y[r]) for r in rows]).mean(0)
            if epoch % 5 == 4:
                fit, penalty = values.tolist()
                share = self.constraint.violations(self.model, x)
                print(f"epoch {epoch + 1} fit {fit:.4f} penalty {penalty:.4f} violations {share:.3f}")


torch.manual_seed(9)
config = ElasticityConfig()
x, y = sales(200, config.features)
trainer = PricingTrainer(config)
trainer.run(x, y)
