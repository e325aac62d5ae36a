# /// case
# title = "All experts of the mixture are one and the same module"
# category = "identity"
# kind = "shared-module-by-list-multiplication"
# kinds_also_ok = ["module-list-same-object", "aliased-modules", "shared-parameters"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["experts", "Expert", "ModuleList"]
# symptom = "the mixture has the parameters of one expert and routing makes no difference"
# symptom_check = "len({id(e) for e in model.mixture.experts}) == 1"
# cause = "[Expert(...)] * n repeats the reference to one module."
# fix = "build every expert in a comprehension"
# ///
from dataclasses import dataclass

import torch
from torch import nn
import torch.nn.functional as F


@dataclass(frozen=True)
class RouterConfig:
    dim: int = 24
    hidden: int = 32
    experts: int = 6
    active: int = 2
    balance: float = 0.01


class Expert(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.gate = nn.Linear(dim, hidden, bias=False)
        self.up = nn.Linear(dim, hidden, bias=False)
        self.down = nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class SparseMixture(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.router = nn.Linear(config.dim, config.experts, bias=False)
        self.experts = nn.ModuleList([Expert(config.dim, config.hidden)] * config.experts)  #- here
#+         self.experts = nn.ModuleList([Expert(config.dim, config.hidden) for _ in range(config.experts)])

    def forward(self, x):
        probabilities = self.router(x).softmax(dim=-1)
        weight, chosen = probabilities.topk(self.config.active, dim=-1)
        weight = weight / weight.sum(dim=-1, keepdim=True)
        output = torch.zeros_like(x)
        for index, expert in enumerate(self.experts):  #! also
            rows, slots = torch.where(chosen == index)
            if len(rows):
                output = output.index_add(0, rows, expert(x[rows]) * weight[rows, slots, None])  #! also
        return output, self.balance_loss(probabilities, chosen)

    def balance_loss(self, probabilities, chosen):
        load = F.one_hot(chosen, self.config.experts).float().mean(dim=(0, 1))
        return self.config.experts * (load * probabilities.mean(dim=0)).sum()


class Forecaster(nn.Module):
    def __init__(self, features, horizon, config):
        super().__init__()
        self.lift = nn.Linear(features, config.dim)
        self.mixture = SparseMixture(config)
        self.norm = nn.LayerNorm(config.dim)
        self.head = nn.Linear(config.dim, horizon)

    def forward(self, window):
        hidden = self.lift(window)
        mixed, balance = self.mixture(hidden)
        return self.head(self.norm(hidden + mixed)), balance


def regimes(count, length=16, horizon=4):
    kind = torch.randint(0, 6, (count, 1))
    t = torch.arange(length + horizon, dtype=torch.float32)
    period = 4.0 + 2.0 * kind
    series = torch.sin(2 * torch.pi * t / period + 6.28 * torch.rand(count, 1)) * (1.0 + 0.2 * kind)
    series = series + 0.05 * torch.randn(count, length + horizon)
    return series[:, :length], series[:, length:]


torch.manual_seed(77)
config = RouterConfig()
model = Forecaster(16, 4, config)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
print("parameters", sum(p.numel() for p in model.parameters()))
for step in range(150):
    window, future = regimes(128)
    forecast, balance = model(window)
    loss = F.mse_loss(forecast, future)
    optimizer.zero_grad()
    (loss + config.balance * balance).backward()
    optimizer.step()
    if step % 30 == 29:
        print(f"step {step + 1} mse {loss.item():.4f} balance {balance.item():.3f}")
