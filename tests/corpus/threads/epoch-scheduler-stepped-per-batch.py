# /// case
# title = "StepLR meant for epochs is stepped for every batch"
# category = "uncovered"
# kind = "scheduler-per-batch"
# kinds_also_ok = ["learning-rate-zero"]
# severity = "warning"
# names = ["scheduler", "step"]
# symptom = "after one epoch the learning rate is a millionth of its start"
# symptom_check = 'optimizer.param_groups[0]["lr"] < 1e-8'
# cause = "scheduler.step() stands in the batch loop"
# fix = "one level out"
# evidence = [
#     { url = "https://github.com/ivadomed/ivadomed/pull/55", title = "Fix scheduler updating" },
#     { url = "https://github.com/pytorch/vision/issues/1261", title = "Scheduler called at each step, instead of epoch." },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(7)
model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.1)  #! also
batches = [(torch.randn(16, 6), torch.randn(16, 1)) for _ in range(15)]


def train_one_epoch():
    total = 0.0
    for x, y in batches:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()  #- here
        total += loss.item()
    return total / len(batches)


for epoch in range(4):
    print(epoch, train_one_epoch(), optimizer.param_groups[0]["lr"])
#+     scheduler.step()
