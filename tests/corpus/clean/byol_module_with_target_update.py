import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class BYOL(nn.Module):
    def __init__(self, dim=12, hidden=24, proj=8):
        super().__init__()
        self.online = nn.Sequential(nn.Linear(dim, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, proj))
        self.target = copy.deepcopy(self.online)
        for p in self.target.parameters():
            p.requires_grad = False
        self.predictor = nn.Sequential(nn.Linear(proj, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, proj))

    @torch.no_grad()
    def update_target(self, tau):
        for o, t in zip(self.online.parameters(), self.target.parameters()):
            t.data = tau * t.data + (1 - tau) * o.data

    def loss(self, a, b):
        p = F.normalize(self.predictor(self.online(a)), dim=-1)
        with torch.no_grad():
            z = F.normalize(self.target(b), dim=-1)
        return 2 - 2 * (p * z).sum(-1)

    def forward(self, a, b):
        return (self.loss(a, b) + self.loss(b, a)).mean()


model = BYOL()
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.05, momentum=0.9)
steps = 10
for k in range(steps):
    x = torch.randn(32, 12)
    loss = model(x + 0.2 * torch.randn_like(x), x + 0.2 * torch.randn_like(x))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model.update_target(1 - 0.01 * (1 + torch.cos(torch.tensor(3.14159 * k / steps)).item()) / 2)
    print(k, loss.item())
