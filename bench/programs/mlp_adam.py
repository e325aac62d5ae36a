"""A small classifier with Adam, 100 steps of batch 32."""

import torch
from torch import nn

torch.manual_seed(0)
inputs = torch.randn(32, 10)
labels = torch.randint(0, 2, (32,))
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()
for _ in range(100):
    optimizer.zero_grad()
    loss = criterion(model(inputs), labels)
    loss.backward()
    optimizer.step()
