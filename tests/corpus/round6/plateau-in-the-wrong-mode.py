# /// case
# title = "The plateau scheduler waits for the loss to grow"
# category = "optimizer"
# kind = "scheduler-wrong-mode"
# kinds_also_ok = ["learning-rate-collapse"]
# severity = "warning"
# names = ["mode", "ReduceLROnPlateau"]
# symptom = "the rate is cut while the loss falls"
# symptom_check = "optimizer.param_groups[0]['lr'] < 1e-3 and history == sorted(history, reverse=True)"
# cause = "mode is max though the metric is a loss"
# fix = "mode min for the loss"
# ///
import torch
import torch.nn as nn


class EarlyLR:
    def __init__(self, optimizer, metric="accuracy"):
        self.metric = metric
        self.scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", factor=0.3, patience=1)  #- here
#+         self.scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max" if metric == "accuracy" else "min", factor=0.3, patience=1)

    def __call__(self, logs):
        self.scheduler.step(logs[self.metric])  #! also


def evaluate(model, x, y):
    with torch.no_grad():
        out = model(x)
        return {"loss": nn.functional.cross_entropy(out, y).item(), "accuracy": (out.argmax(1) == y).float().mean().item()}


torch.manual_seed(41)
x = torch.randn(300, 10)
y = (x @ torch.randn(10, 4)).argmax(1)
model = nn.Linear(10, 4)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
adjust = EarlyLR(optimizer, metric="loss")  #! also
history = []
for epoch in range(12):
    for rows in torch.randperm(200).split(50):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
    logs = evaluate(model, x[200:], y[200:])
    adjust(logs)
    history.append(logs["loss"])
print(history[0], history[-1], optimizer.param_groups[0]["lr"])
