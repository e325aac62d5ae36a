# /// case
# title = "The inner step's gradients are taken without create_graph, so the weights of the demonstrations get none"
# category = "higher-order"
# kind = "missing-create-graph"
# kinds_also_ok = ["hypergradient-lost", "inner-step-not-differentiable", "first-order-only"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["create_graph", "autograd.grad", "logits"]
# symptom = "all demonstrations keep the same weight, the bad ones too"
# symptom_check = "logits.grad is None"
# cause = "Without create_graph the inner gradients are constants that no longer depend on the weights."
# fix = "torch.autograd.grad(..., create_graph=True)"
# ///
import torch
from torch import nn
from torch.func import functional_call

cfg = {"demos": 120, "trusted": 32, "iters": 120, "inner_lr": 0.5, "policy_lr": 5e-3, "weight_lr": 0.1}


def expert(obs):
    return torch.tanh(obs @ torch.tensor([[1.0, -0.5], [0.3, 0.8], [-0.7, 0.2]]))


def weighted_bc(pred, act, weights):
    per_demo = (pred - act).square().sum(-1)
    return (weights * per_demo).sum() / weights.sum().clamp_min(1e-6)


torch.manual_seed(17)
obs = torch.randn(cfg["demos"], 3)
corrupt = torch.arange(cfg["demos"]) % 3 == 0
act = torch.where(corrupt[:, None], -expert(obs), expert(obs))
trusted_obs = torch.randn(cfg["trusted"], 3)
trusted_act = expert(trusted_obs)

policy = nn.Sequential(nn.Linear(3, 24), nn.Tanh(), nn.Linear(24, 2))
logits = torch.zeros(cfg["demos"], requires_grad=True)
policy_opt = torch.optim.Adam(policy.parameters(), lr=cfg["policy_lr"])
weight_opt = torch.optim.Adam([logits], lr=cfg["weight_lr"])

curve = []
for it in range(cfg["iters"]):
    params = dict(policy.named_parameters())
    inner = weighted_bc(policy(obs), act, torch.sigmoid(logits))
    grads = torch.autograd.grad(inner, list(params.values()))  #- here
#+     grads = torch.autograd.grad(inner, list(params.values()), create_graph=True)
    ahead = {name: p - cfg["inner_lr"] * g for (name, p), g in zip(params.items(), grads)}  #! also
    outer = nn.functional.mse_loss(functional_call(policy, ahead, (trusted_obs,)), trusted_act)
    weight_opt.zero_grad()
    outer.backward()  #! also
    weight_opt.step()  #! also

    loss = weighted_bc(policy(obs), act, torch.sigmoid(logits).detach())
    policy_opt.zero_grad()
    loss.backward()
    policy_opt.step()
    curve.append(outer.item())

weights = torch.sigmoid(logits).detach()
print("trusted loss", curve[0], curve[-1])
print("weight of clean", weights[~corrupt].mean().item(), "of corrupt", weights[corrupt].mean().item())
