"""BP772 scheduler-per-epoch."""

PROGRAMS = {
    "one cycle over all batches, stepped per epoch": """
import torch, torch.nn as nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(96, 4), torch.randn(96, 1)), batch_size=8)
n_epochs = 5
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=1e-2, total_steps=n_epochs * len(loader))
for epoch in range(n_epochs):
    for xb, yb in loader:
        opt.zero_grad()
        loss = (net(xb) - yb).pow(2).mean()
        loss.backward()
        opt.step()
    sched.step()  # <- BP772
""",
    "right: built for the epochs": """
import torch, torch.nn as nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(96, 4), torch.randn(96, 1)), batch_size=8)
n_epochs = 5
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=1e-2, total_steps=n_epochs)
for epoch in range(n_epochs):
    for xb, yb in loader:
        opt.zero_grad()
        loss = (net(xb) - yb).pow(2).mean()
        loss.backward()
        opt.step()
    sched.step()
""",
    "right: the run ends long before the schedule does": """
import torch
from torch import nn

model, epochs, batches = nn.Linear(3, 1), 30, torch.randn(6, 8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs * len(batches))
for epoch in range(3):
    for x in batches:
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
    schedule.step()
""",
}
