# /// case
# title = "Scheduler drives the optimizer that was replaced"
# category = "optimizer-wiring"
# kind = "scheduler-holds-other-optimizer"
# severity = "warning"
# names = ["scheduler", "optimizer"]
# difficulty = "medium"
# symptom = "Learning rate stays at its initial value; PyTorch only warns about the order of scheduler and optimizer steps."
# symptom_check = "scheduler.optimizer is not optimizer and lrs[-1] == CONFIG['optim']['lr']"
# warns = "lr_scheduler.step()"
# cause = "The scheduler is created for the warm-start optimizer; then optimizer is rebound to a new AdamW. scheduler.step() changes the lr of the abandoned object."
# fix = "Create the scheduler after the final optimizer."
# evidence = [{ url = "https://github.com/huggingface/transformers/pull/24758" }, { url = "https://github.com/airaria/TextBrewer/issues/12" }]
# ///
"""Config-driven regression run."""
import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR

CONFIG = {
    "seed": 4,
    "model": {"name": "mlp", "width": 24, "depth": 2},
    "optim": {"name": "adamw", "lr": 1e-2, "weight_decay": 1e-4},
    "epochs": 10,
}

OPTIMIZERS = {
    "sgd": lambda p, c: torch.optim.SGD(p, lr=c["lr"], momentum=0.9),
    "adamw": lambda p, c: torch.optim.AdamW(p, lr=c["lr"], weight_decay=c["weight_decay"]),
}


def build_model(c, n_in, n_out):
    layers, width = [], n_in
    for _ in range(c["depth"]):
        layers += [nn.Linear(width, c["width"]), nn.GELU()]
        width = c["width"]
    return nn.Sequential(*layers, nn.Linear(width, n_out))


torch.manual_seed(CONFIG["seed"])
x = torch.rand(200, 3) * 4 - 2
y = torch.stack([x.prod(1), x.sin().sum(1)], 1)
model = build_model(CONFIG["model"], 3, 2)

optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
#+ optimizer = OPTIMIZERS[CONFIG["optim"]["name"]](model.parameters(), CONFIG["optim"])
scheduler = CosineAnnealingLR(optimizer, T_max=CONFIG["epochs"])  #! here
optimizer = OPTIMIZERS[CONFIG["optim"]["name"]](model.parameters(), CONFIG["optim"])  #- here

lrs, losses = [], []
for epoch in range(CONFIG["epochs"]):
    for xb, yb in zip(x.split(50), y.split(50)):
        loss = nn.functional.mse_loss(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()  #! here
    lrs.append(optimizer.param_groups[0]["lr"])
    losses.append(loss.item())
print("lr", lrs[0], "->", lrs[-1], " loss", losses[0], "->", losses[-1])
