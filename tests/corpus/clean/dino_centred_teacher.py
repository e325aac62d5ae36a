import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Head(nn.Module):
    def __init__(self, dim, out):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(dim, 16), nn.GELU(), nn.Linear(16, 8))
        self.last = nn.utils.parametrizations.weight_norm(nn.Linear(8, out, bias=False))
        self.last.parametrizations.weight.original0.data.fill_(1)
        self.last.parametrizations.weight.original0.requires_grad = False

    def forward(self, x):
        return self.last(F.normalize(self.mlp(x), dim=-1))


student = nn.Sequential(nn.Linear(10, 12), nn.GELU(), Head(12, 20))
teacher = copy.deepcopy(student)
for p in teacher.parameters():
    p.requires_grad = False
center = torch.zeros(1, 20)
optimizer = torch.optim.AdamW([p for p in student.parameters() if p.requires_grad], lr=1e-3)
for it in range(5):
    images = torch.randn(8, 10)
    views = [images + 0.1 * torch.randn_like(images) for _ in range(4)]
    with torch.no_grad():
        targets = [F.softmax((teacher(v) - center) / 0.04, dim=-1) for v in views[:2]]
    guesses = [student(v) / 0.1 for v in views]
    losses = [
        -(t * F.log_softmax(g, dim=-1)).sum(-1).mean()
        for i, t in enumerate(targets)
        for j, g in enumerate(guesses)
        if i != j
    ]
    loss = sum(losses) / len(losses)
    optimizer.zero_grad()
    loss.backward()
    if it < 2:
        for name, p in student.named_parameters():
            if "last" in name:
                p.grad = None
    nn.utils.clip_grad_norm_(student.parameters(), 3.0)
    optimizer.step()
    with torch.no_grad():
        momentum = 1 - (1 - 0.99) * (1 - it / 5)
        for ps, pt in zip(student.parameters(), teacher.parameters()):
            pt.mul_(momentum).add_((1 - momentum) * ps.detach())
        center = 0.9 * center + 0.1 * torch.cat([teacher(v) for v in views[:2]]).mean(0, keepdim=True)
