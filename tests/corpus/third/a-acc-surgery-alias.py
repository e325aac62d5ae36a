# /// case
# title = "Gradient surgery stores references to .grad that the next task overwrites"
# category = "accumulation"
# kind = "saved-gradient-aliased"
# kinds_also_ok = ["accumulation-lost", "silent-inplace"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["task_grads", "grad", "set_to_none", "collect"]
# difficulty = "hard"
# symptom = "all stored task gradients are the same tensors (those of the last task); the projection does nothing"
# symptom_check = "task_grads[0][0] is task_grads[1][0]"
# cause = "zero_grad(set_to_none=False) reuses the gradient buffers, the list holds references to them"
# fix = "clone the gradients"
# evidence = [{ url = "https://github.com/vasily789/adaptive-weighted-gans/pull/1" }, { url = "https://github.com/huggingface/pytorch-image-models/pull/2786" }, { url = "https://github.com/shivram1987/diffGrad/issues/2" }]
# ///
"""Two-task regression with projected conflicting gradients (PCGrad)."""
import random

import torch
import torch.nn as nn


class TwoHead(nn.Module):
    def __init__(self, inputs=6, width=24):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.heads = nn.ModuleList(nn.Linear(width, 1) for _ in range(2))

    def forward(self, x):
        h = self.trunk(x)
        return [head(h).squeeze(1) for head in self.heads]


def collect(losses, params, opt):
    stored = []
    for loss in losses:
        opt.zero_grad(set_to_none=False)  #! here
        loss.backward(retain_graph=loss is not losses[-1])
        stored.append([p.grad for p in params])  #- here
#+         stored.append([p.grad.clone() for p in params])
    return stored  #! also


def project(task_grads):
    flat = [torch.cat([g.flatten() for g in grads]) for grads in task_grads]
    fixed = []
    for i, g in enumerate(flat):
        g = g.clone()
        for j in random.sample(range(len(flat)), len(flat)):
            if i == j:
                continue
            dot = torch.dot(g, flat[j])
            if dot < 0:
                g -= dot / flat[j].dot(flat[j]) * flat[j]
        fixed.append(g)
    return torch.stack(fixed).sum(dim=0)


def assign(params, vector):
    at = 0
    for p in params:
        p.grad = vector[at:at + p.numel()].view_as(p).clone()
        at += p.numel()


torch.manual_seed(0)
random.seed(0)
model = TwoHead()
params = list(model.trunk.parameters())
head_params = [q for h in model.heads for q in h.parameters()]
opt = torch.optim.Adam([*params, *head_params], lr=4e-3)
for p in [*params, *head_params]:
    p.grad = torch.zeros_like(p)

for step in range(25):
    x = torch.randn(64, 6)
    targets = [x[:, 0] * x[:, 1], -x[:, 0] * x[:, 1] + x[:, 2]]
    losses = [nn.functional.mse_loss(o, t) for o, t in zip(model(x), targets)]
    task_grads = collect(losses, [*params, *head_params], opt)  #! also
    assign([*params, *head_params], project(task_grads))
    opt.step()
print([round(l.item(), 3) for l in losses])
