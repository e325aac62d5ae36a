from dataclasses import dataclass

import torch
from torch import nn
from torch.func import functional_call


@dataclass(frozen=True)
class Meta:
    iterations: int = 80
    tasks: int = 4
    shots: int = 16
    inner_steps: int = 2
    inner_lr: float = 0.1
    outer_lr: float = 5e-3


class ReachTask:
    def __init__(self):
        angle = torch.rand(()) * 1.2 - 0.6
        self.rotation = torch.stack([torch.stack([angle.cos(), -angle.sin()]), torch.stack([angle.sin(), angle.cos()])])
        self.gain = 0.5 + torch.rand(())

    def batch(self, n):
        offset = torch.randn(n, 2)
        return offset, self.gain * torch.tanh(offset @ self.rotation.T)


def mse(policy, params, batch):
    offset, command = batch
    return nn.functional.mse_loss(functional_call(policy, params, (offset,)), command)


def adapted(policy, task, cfg):
    params = {k: p.detach().clone().requires_grad_() for k, p in policy.named_parameters()}
    for _ in range(cfg.inner_steps):
        grads = torch.autograd.grad(mse(policy, params, task.batch(cfg.shots)), list(params.values()))
        params = {k: (p - cfg.inner_lr * g).detach().requires_grad_() for (k, p), g in zip(params.items(), grads)}
    return params


def first_order_step(policy, optimizer, cfg):
    optimizer.zero_grad()
    total = 0.0
    for _ in range(cfg.tasks):
        task = ReachTask()
        params = adapted(policy, task, cfg)
        loss = mse(policy, params, task.batch(cfg.shots))
        total += loss.item()
        for p, g in zip(policy.parameters(), torch.autograd.grad(loss, list(params.values()))):
            p.grad = g / cfg.tasks if p.grad is None else p.grad + g / cfg.tasks
    optimizer.step()
    return total / cfg.tasks


torch.manual_seed(61)
cfg = Meta()
policy = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=cfg.outer_lr)
curve = [first_order_step(policy, optimizer, cfg) for _ in range(cfg.iterations)]
print("query loss", sum(curve[:5]) / 5, "->", sum(curve[-5:]) / 5)
