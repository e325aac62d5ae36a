import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class BYOL(nn.Module):
    def __init__(self, encoder, dim, tau=0.95):
        super().__init__()
        self.online, self.target, self.tau = encoder, copy.deepcopy(encoder), tau
        self.predictor = nn.Sequential(nn.Linear(dim, 16), nn.ReLU(), nn.Linear(16, dim))
        for p in self.target.parameters():
            p.requires_grad = False

    @torch.no_grad()
    def update_target(self):
        for slow, fast in zip(self.target.parameters(), self.online.parameters()):
            slow.mul_(self.tau).add_(fast, alpha=1 - self.tau)

    def half(self, a, b):
        p = F.normalize(self.predictor(self.online(a)), dim=1)
        with torch.no_grad():
            z = F.normalize(self.target(b), dim=1)
        return (2 - 2 * (p * z).sum(dim=1)).mean()

    def forward(self, a, b):
        return self.half(a, b) + self.half(b, a)


torch.manual_seed(105)
model = BYOL(nn.Sequential(nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 8)), 8)
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.05, momentum=0.9)
data = torch.randn(96, 10)
for epoch in range(3):
    for batch in data[torch.randperm(96)].split(24):
        view = lambda: batch + 0.2 * torch.randn_like(batch)
        loss = model(view(), view())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.update_target()
    print(epoch, loss.item())
