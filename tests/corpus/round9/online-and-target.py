# /// case
# title = "The optimizer of BYOL is given the online encoder's parameters, without the predictor's"
# category = "optimizer"
# kind = "predictor-not-in-optimizer"
# kinds_also_ok = ["parameter-not-in-optimizer", "incomplete-parameter-list", "module-never-trained"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["optimizer", "predictor", "online"]
# symptom = "the predictor gets gradients, which pile up, and never moves"
# symptom_check = "all(p.grad is not None and p not in optimizer.state for p in byol.predictor.parameters())"
# cause = "The predictor is a module of its own beside online, so online.parameters() does not hold its parameters."
# fix = "add byol.predictor.parameters() to the optimizer"
# ///
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


def projector(inputs, width, outputs):
    return nn.Sequential(nn.Linear(inputs, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, outputs))


class BYOL(nn.Module):
    def __init__(self, backbone, features, width=32, outputs=16, momentum=0.95):
        super().__init__()
        self.online = nn.Sequential(backbone, projector(features, width, outputs))
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.predictor = projector(outputs, width, outputs)  #! also
        self.momentum = momentum

    @torch.no_grad()
    def update_target(self):
        for slow, fast in zip(self.target.parameters(), self.online.parameters()):
            slow.mul_(self.momentum).add_(fast, alpha=1 - self.momentum)

    def regress(self, first, second):
        prediction = self.predictor(self.online(first))
        with torch.no_grad():
            goal = self.target(second)
        return 2 - 2 * F.cosine_similarity(prediction, goal, dim=1).mean()

    def forward(self, first, second):
        return self.regress(first, second) + self.regress(second, first)


class Views:
    def __init__(self, count):
        self.data = torch.randn(8, 20)[torch.randint(0, 8, (count,))] + 0.3 * torch.randn(count, 20)

    def __call__(self, size):
        x = self.data[torch.randint(0, len(self.data), (size,))]
        return tuple(x * (torch.rand_like(x) > 0.2) + 0.1 * torch.randn_like(x) for _ in range(2))


torch.manual_seed(37)
views = Views(256)
byol = BYOL(nn.Sequential(nn.Linear(20, 40), nn.ReLU()), features=40)
optimizer = torch.optim.AdamW(byol.online.parameters(), lr=2e-3, weight_decay=1e-4)  #- here
#+ optimizer = torch.optim.AdamW([*byol.online.parameters(), *byol.predictor.parameters()], lr=2e-3, weight_decay=1e-4)
for step in range(20):
    loss = byol(*views(64))
    optimizer.zero_grad()  #! also
    loss.backward()
    optimizer.step()  #! also
    byol.update_target()
    if step % 5 == 4:
        print(step, round(loss.item(), 4))
