# /// case
# title = "Per-epoch decay is stepped per batch"
# category = "optimizer-wiring"
# kind = "learning-rate-collapsed"
# severity = "warning"
# names = ["scheduler", "lr"]
# difficulty = "medium"
# symptom = "Loss stops moving within the first epoch; the learning rate is around 1e-20 at the end."
# symptom_check = "lr < 1e-10"
# cause = "ExponentialLR(gamma=0.5) is meant per epoch; scheduler.step() stands inside the batch loop, so the rate halves every batch."
# fix = "Call scheduler.step() once per epoch, after the batch loop."
# evidence = [{ url = "https://github.com/ivadomed/ivadomed/pull/55" }]
# ///
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(9)
xs = torch.randn(320, 12)
ys = (xs[:, 0] * xs[:, 1] > 0).float().unsqueeze(1)
loader = DataLoader(TensorDataset(xs, ys), batch_size=16, shuffle=True)

model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)  #! here

epoch_losses = []
for epoch in range(4):
    running = 0.0
    for xb, yb in loader:  #! also
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()  #! also
        scheduler.step()  #- here
        running += loss.item()
#+     scheduler.step()
    epoch_losses.append(running / len(loader))
lr = optimizer.param_groups[0]["lr"]
print(epoch_losses, "final lr", lr)
