import copy

import torch
from torch import nn

torch.manual_seed(12)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
x, y = torch.randn(40, 4), torch.randn(40, 1)
xv, yv = torch.randn(40, 4), torch.randn(40, 1)
best_loss, best_state = float("inf"), None
for epoch in range(25):
    model.train()
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        val = nn.functional.mse_loss(model(xv), yv).item()
    if val < best_loss:
        best_loss = val
        best_state = copy.deepcopy(model.state_dict())
model.load_state_dict(best_state)
print(best_loss, copy.__name__)
