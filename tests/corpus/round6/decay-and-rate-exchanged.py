# /// case
# title = "The target takes nearly all of the online network"
# category = "identity"
# kind = "ema-weights-exchanged"
# kinds_also_ok = ["moving-average-wrong", "experiment"]
# severity = "warning"
# names = ["decay", "momentum_update"]
# symptom = "the target follows the online network at once"
# symptom_check = "moved > 0.9"
# cause = "the two weights of the average are exchanged"
# fix = "decay for the target, 1 - decay for the online network"
# ///
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class BYOL(nn.Module):
    def __init__(self, dim=10, out=8, decay=0.99):  #! also
        super().__init__()
        self.online = nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, out))
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.predict = nn.Linear(out, out)
        self.decay = decay

    def forward(self, a, b):
        with torch.no_grad():
            goal = F.normalize(self.target(b), dim=1)
        return 2 - 2 * (F.normalize(self.predict(self.online(a)), dim=1) * goal).sum(1).mean()

    @torch.no_grad()
    def momentum_update(self):
        for t, o in zip(self.target.parameters(), self.online.parameters()):
            t.mul_(1 - self.decay).add_(o, alpha=self.decay)  #- here
#+             t.mul_(self.decay).add_(o, alpha=1 - self.decay)


torch.manual_seed(37)
learner = BYOL()
opt = torch.optim.SGD([p for p in learner.parameters() if p.requires_grad], lr=0.1, momentum=0.9)
start = learner.online[0].weight.detach().clone()
for step in range(12):
    x = torch.randn(64, 10)
    loss = learner(x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x))
    opt.zero_grad()
    loss.backward()
    opt.step()
    learner.momentum_update()
moved = (learner.target[0].weight - start).norm() / (learner.online[0].weight - start).norm()
print(loss.item(), moved.item())
