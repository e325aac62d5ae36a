import copy

import torch
from torch import nn

torch.manual_seed(22)
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
x = torch.randn(120, 6)
y = (x[:, :1] * x[:, 1:2])
best, best_state = float("inf"), None
for epoch in range(8):
    model.train()
    for idx in torch.randperm(80).split(20):
        loss = nn.functional.mse_loss(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val = nn.functional.mse_loss(model(x[80:]), y[80:]).item()
    scheduler.step(val)
    if val < best:
        best, best_state = val, copy.deepcopy(model.state_dict())
model.load_state_dict(best_state)
print(best, optimizer.param_groups[0]["lr"])
