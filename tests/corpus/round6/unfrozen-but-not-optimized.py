# /// case
# title = "Layers are unfrozen after the optimizer was made"
# category = "optimizer"
# kind = "parameter-not-in-optimizer"
# kinds_also_ok = ["unfrozen-not-optimized"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["requires_grad_", "optimizer"]
# symptom = "the body never changes; its gradients add up"
# symptom_check = "torch.equal(start, model['body'][0].weight)"
# cause = "the optimizer was made of the parameters that required gradients then"
# fix = "add_param_group"
# ///
from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass
class Plan:
    lr: float = 1e-3
    epochs: int = 4
    unfreeze_at: int = 2


def build():
    body = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU())
    body.requires_grad_(False)
    return nn.ModuleDict({"body": body, "head": nn.Linear(24, 3)})


def fit(model, x, y, plan):
    trainable = [p for p in model.parameters() if p.requires_grad]  #! also
    optimizer = torch.optim.AdamW(trainable, lr=plan.lr)  #! also
    for epoch in range(plan.epochs):
        if epoch == plan.unfreeze_at:
            model["body"].requires_grad_(True)  #! here
#+             optimizer.add_param_group({"params": model["body"].parameters(), "lr": plan.lr / 10})
        for xb, yb in zip(x.split(20), y.split(20)):
            loss = nn.functional.cross_entropy(model["head"](model["body"](xb)), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


torch.manual_seed(15)
model = build()
start = model["body"][0].weight.detach().clone()
x = torch.randn(80, 12)
fit(model, x, x[:, :3].argmax(1), Plan())
