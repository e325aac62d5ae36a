import torch
import torch.nn as nn
from torch.optim.lr_scheduler import OneCycleLR

torch.manual_seed(18)
x = torch.randn(160, 5)
y = x.abs().sum(1, keepdim=True)
batches = list(zip(x.split(16), y.split(16)))
epochs = 4
model = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
sched = OneCycleLR(opt, max_lr=0.05, epochs=epochs, steps_per_epoch=len(batches))
for epoch in range(epochs):
    for xb, yb in batches:
        loss = nn.functional.mse_loss(model(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
    print(epoch, loss.item(), sched.get_last_lr()[0])
