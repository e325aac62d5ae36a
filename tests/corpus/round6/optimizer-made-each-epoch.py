# /// case
# title = "Adam is made anew in each epoch"
# category = "optimizer"
# kind = "optimizer-state-lost"
# kinds_also_ok = ["optimizer-recreated"]
# severity = "warning"
# names = ["Adam", "run_epoch"]
# symptom = "moments start from zero in each epoch"
# symptom_check = "steps == 3"
# cause = "a new optimizer is made to set the rate"
# fix = "make it once and set the group's rate"
# ///
import torch
import torch.nn as nn

torch.manual_seed(29)


def run_epoch(model, x, y, lr):  #-
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)  #- here
#+ def run_epoch(model, optimizer, x, y, lr):
#+     optimizer.param_groups[0]["lr"] = lr
    for xb, yb in zip(x.split(32), y.split(32)):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(xb), yb)
        loss.backward()
        optimizer.step()
    return optimizer, loss.item()


model = nn.Sequential(nn.Linear(5, 40), nn.Tanh(), nn.Linear(40, 1))
x = torch.randn(96, 5)
y = x.sin().sum(1, keepdim=True)
n_epochs, base_lr = 8, 5e-3
#+ optimizer = torch.optim.Adam(model.parameters(), lr=base_lr)
for epoch in range(n_epochs):
    lr = base_lr * (1 - epoch / n_epochs)
    optimizer, last = run_epoch(model, x, y, lr)  #- also
#+     optimizer, last = run_epoch(model, optimizer, x, y, lr)
    print(epoch, lr, last)
steps = int(optimizer.state[model[0].weight]["step"])
