import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
student = nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 3))
teacher = copy.deepcopy(student)
for p in teacher.parameters():
    p.detach_()
opt = torch.optim.Adam(student.parameters(), lr=3e-3)
for step in range(8):
    labelled, plain = torch.randn(12, 6), torch.randn(24, 6)
    target = labelled[:, :3].argmax(1)
    with torch.no_grad():
        belief = F.softmax(teacher(plain + 0.1 * torch.randn_like(plain)), dim=1)
    ramp = min(1.0, step / 5)
    loss = F.cross_entropy(student(labelled), target)
    loss = loss + ramp * F.mse_loss(F.softmax(student(plain), dim=1), belief)
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for ours, theirs in zip(teacher.state_dict().values(), student.state_dict().values()):
            if ours.dtype.is_floating_point:
                ours.mul_(0.95).add_(theirs, alpha=0.05)
print(loss.item())
