# /// case
# title = "A schedule in epochs is stepped for each batch"
# category = "optimizer"
# kind = "scheduler-wrong-frequency"
# kinds_also_ok = ["learning-rate-collapse"]
# severity = "warning"
# names = ["scheduler.step", "step_size"]
# symptom = "the rate is practically 0 after two epochs"
# symptom_check = "optimizer.param_groups[0]['lr'] < 1e-20"
# cause = "the scheduler counts batches where it is meant to count epochs"
# fix = "step it once per epoch"
# evidence = [
#     { url = "https://github.com/ivadomed/ivadomed/pull/55", title = "Fix scheduler updating" },
#     { url = "https://github.com/automl/Auto-PyTorch/pull/210", title = "Fixing the scheduler to update for epochs and not batch iterations" },
#     { url = "https://github.com/leftthomas/SRGAN/issues/94", title = "Learning rate scheduler is working incorrect" },
# ]
# ///
import torch
import torch.nn as nn
from torch.optim.lr_scheduler import StepLR


def train_one_epoch(model, batches, optimizer, scheduler, criterion):
    model.train()
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()  #- here
        losses.append(loss.item())
    return sum(losses) / len(losses)


torch.manual_seed(10)
epochs = 6
x = torch.randn(200, 8)
y = (x.prod(1) > 0).float()
batches = list(zip(x.split(10), y[:, None].split(10)))
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
scheduler = StepLR(optimizer, step_size=epochs // 2, gamma=0.1)  #! also
criterion = nn.BCEWithLogitsLoss()
for epoch in range(epochs):
    mean = train_one_epoch(model, batches, optimizer, scheduler, criterion)
#+     scheduler.step()
    print(epoch, mean, scheduler.get_last_lr())
