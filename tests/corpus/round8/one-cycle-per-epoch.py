# /// case
# title = "A one-cycle schedule that counts batches is advanced once per epoch"
# category = "optimizer"
# kind = "scheduler-wrong-cadence"
# kinds_also_ok = ["scheduler-step-per-epoch", "learning-rate-stuck-in-warmup"]
# severity = "warning"
# names = ["scheduler", "OneCycleLR", "total_steps"]
# symptom = "the learning rate never leaves the warm-up"
# symptom_check = "max(rates) < 0.09"
# cause = "OneCycleLR was given the number of batches of the whole run, and scheduler.step() stands outside the loop over batches."
# fix = "step it after every batch"
# ///
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(8)
epochs = 4
x = torch.randn(96, 14)
y = torch.sin(x[:, :2]).sum(1, keepdim=True)
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True, drop_last=True)

model = nn.Sequential(
    nn.Linear(14, 32),
    nn.BatchNorm1d(32),
    nn.SiLU(),
    nn.Linear(32, 1),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=epochs * len(loader))  #! here
rates = []


def train_epoch():
    model.train()
    total = 0.0
    for features, target in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(features), target)
        loss.backward()
        optimizer.step()  #! here
#+         scheduler.step()
        rates.append(optimizer.param_groups[0]["lr"])
        total += loss.item()
    return total / len(loader)


for epoch in range(epochs):
    mean_loss = train_epoch()
    scheduler.step()  #- here
    print(f"{epoch}: {mean_loss:.4f} at rate {rates[-1]:.5f}")
