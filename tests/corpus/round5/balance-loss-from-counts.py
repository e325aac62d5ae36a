# /// case
# title = "The load-balancing loss is made of counts only"
# category = "graph-break"
# kind = "constant-loss-term"
# kinds_also_ok = ["nondifferentiable-operation", "zero-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["load", "aux", "importance"]
# symptom = "the auxiliary loss has no gradient in the router"
# symptom_check = "aux_reach is None"
# cause = "counts of chosen experts are not differentiable; the mean probability is missing"
# fix = "multiply by the mean router probability"
# evidence = [
#     { url = "https://github.com/huggingface/transformers/issues/28093", title = "load_balancing_loss in mixtral model" },
#     { url = "https://github.com/huggingface/transformers/issues/28255", title = "Incorrect implementation of auxiliary loss" },
# ]
# ///
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class MoEConfig:
    dim: int = 16
    n_experts: int = 4
    top_k: int = 2
    aux_coef: float = 0.02


class SparseMoE(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.router = nn.Linear(cfg.dim, cfg.n_experts, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(cfg.dim, 32), nn.SiLU(), nn.Linear(32, cfg.dim)) for _ in range(cfg.n_experts))

    def forward(self, x):
        probs = self.router(x).softmax(-1)
        weights, chosen = probs.topk(self.cfg.top_k, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for e, expert in enumerate(self.experts):
            token, slot = (chosen == e).nonzero(as_tuple=True)
            if token.numel():
                out = out.index_add(0, token, expert(x[token]) * weights[token, slot, None])
        # switch-style balancing
        load = F.one_hot(chosen, self.cfg.n_experts).float().sum(1).mean(0) / self.cfg.top_k
        importance = F.one_hot(probs.argmax(-1), self.cfg.n_experts).float().mean(0)  #- here
#+         importance = probs.mean(0)
        aux = self.cfg.n_experts * (load * importance).sum()  #! also
        return out, aux


torch.manual_seed(5)
cfg = MoEConfig()
moe, head = SparseMoE(cfg), nn.Linear(cfg.dim, 1)
opt = torch.optim.AdamW([*moe.parameters(), *head.parameters()], lr=1e-3)
for step in range(8):
    x = torch.randn(48, cfg.dim)
    y = x[:, :1] * x[:, 1:2].sign()
    h, aux = moe(x)
    loss = F.mse_loss(head(x + h), y) + cfg.aux_coef * aux  #! also
    opt.zero_grad()
    aux_reach = torch.autograd.grad(aux, moe.router.weight, retain_graph=True)[0] if aux.requires_grad else None
    loss.backward()
    opt.step()
print(loss.item(), float(aux.detach()))
