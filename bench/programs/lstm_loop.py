"""A recurrent cell unrolled over 24 steps, 20 updates: many small nodes."""

import torch
from torch import nn

torch.manual_seed(0)
cell = nn.LSTMCell(8, 16)
head = nn.Linear(16, 1)
optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.01)
sequence = torch.randn(24, 4, 8)
for _ in range(20):
    optimizer.zero_grad()
    h = torch.zeros(4, 16)
    c = torch.zeros(4, 16)
    for step in sequence:
        h, c = cell(step, (h, c))
    loss = head(h).pow(2).mean()
    loss.backward()
    optimizer.step()
