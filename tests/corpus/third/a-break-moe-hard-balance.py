# /// case
# title = "Expert load-balancing loss is built from hard routing counts only"
# category = "graph-break"
# kind = "loss-term-without-gradient"
# kinds_also_ok = ["graph-break-non-differentiable"]
# severity = "warning"
# names = ["aux", "balance", "load", "one_hot", "top1"]
# difficulty = "hard"
# symptom = "the balancing loss has no gradient; a few experts take all tokens"
# symptom_check = "not aux.requires_grad"
# cause = "one_hot(argmax) counts are constants for autograd; the router probabilities do not occur in the term"
# fix = "multiply the token fraction by the mean router probability of each expert"
# evidence = [{ url = "https://github.com/CASIA-LMC-Lab/AnomalyMoE/issues/1" }, { url = "https://github.com/huggingface/transformers/issues/28255" }]
# ///
"""Switch-style mixture of experts trained on a piecewise regression task."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass(frozen=True)
class MoEConfig:
    d_in: int = 8
    d_model: int = 24
    experts: int = 4
    aux_weight: float = 0.02
    steps: int = 30
    lr: float = 3e-3


class Router(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.gate = nn.Linear(cfg.d_model, cfg.experts, bias=False)
        self.experts = cfg.experts

    def forward(self, h):
        probs = self.gate(h).softmax(dim=-1)
        weight, top1 = probs.max(dim=-1)
        return weight, top1, self.balance(probs, top1)

    def balance(self, probs, top1):
        load = F.one_hot(top1, self.experts).float().mean(dim=0)  #! also
        return self.experts * (load * load).sum()  #- here
#+         return self.experts * (load * probs.mean(dim=0)).sum()


class SwitchLayer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.router = Router(cfg)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(cfg.d_model, 2 * cfg.d_model), nn.GELU(), nn.Linear(2 * cfg.d_model, cfg.d_model))
            for _ in range(cfg.experts)
        )

    def forward(self, h):
        weight, top1, aux = self.router(h)
        out = torch.zeros_like(h)
        for e, expert in enumerate(self.experts):
            rows = (top1 == e).nonzero(as_tuple=True)[0]
            if rows.numel():
                out = out.index_add(0, rows, weight[rows, None] * expert(h[rows]))
        return h + out, aux, top1


class Regressor(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.inp = nn.Linear(cfg.d_in, cfg.d_model)
        self.moe = SwitchLayer(cfg)
        self.out = nn.Linear(cfg.d_model, 1)

    def forward(self, x):
        h, aux, top1 = self.moe(self.inp(x))
        return self.out(h).squeeze(-1), aux, top1


def sample(cfg, n=96):
    x = torch.randn(n, cfg.d_in)
    region = (x[:, 0] > 0).long() * 2 + (x[:, 1] > 0).long()
    slopes = torch.tensor([1.0, -2.0, 0.5, 3.0])
    return x, slopes[region] * x[:, 2] + 0.1 * torch.randn(n)


cfg = MoEConfig()
torch.manual_seed(0)
model = Regressor(cfg)
opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
usage = torch.zeros(cfg.experts)
for step in range(cfg.steps):
    x, y = sample(cfg)
    pred, aux, top1 = model(x)
    loss = F.mse_loss(pred, y) + cfg.aux_weight * aux  #! also
    opt.zero_grad()
    loss.backward()
    opt.step()
    usage += torch.bincount(top1, minlength=cfg.experts)
print("usage", (usage / usage.sum()).tolist())
