import copy

import torch
from torch import nn

torch.manual_seed(30)
student = nn.Sequential(nn.Linear(5, 12), nn.ReLU(), nn.Dropout(0.3), nn.Linear(12, 2))
teacher = copy.deepcopy(student).requires_grad_(False)
opt = torch.optim.Adam(student.parameters(), lr=1e-3)
for step in range(10):
    x, y, u = torch.randn(8, 5), torch.randint(0, 2, (8,)), torch.randn(24, 5)
    with torch.no_grad():
        target = teacher(u).softmax(-1)
    loss = nn.functional.cross_entropy(student(x), y) + (student(u).softmax(-1) - target).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for t, s in zip(teacher.parameters(), student.parameters()):
            t.mul_(0.95).add_(s, alpha=0.05)
