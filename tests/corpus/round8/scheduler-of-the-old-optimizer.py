# /// case
# title = "After unfreezing, the scheduler still anneals the optimizer that was thrown away"
# category = "optimizer"
# kind = "scheduler-on-stale-optimizer"
# kinds_also_ok = ["scheduler-wrong-optimizer", "optimizer-replaced"]
# severity = "warning"
# names = ["scheduler", "optimizer", "unfreeze"]
# symptom = "the learning rate of the optimizer in use stays constant"
# symptom_check = 'abs(session.optimizer.param_groups[0]["lr"] - session.fine_lr) < 1e-12'
# cause = "unfreeze makes a new optimizer, but the scheduler holds the old one, whose learning rate nobody uses."
# fix = "make the scheduler anew with the optimizer"
# ///
import torch
from torch import nn
from torch.optim.lr_scheduler import ExponentialLR


class FineTuning:
    fine_lr = 1e-3

    def __init__(self, body, head):
        self.body, self.head = body, head
        self.body.requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.head.parameters(), lr=1e-2)
        self.scheduler = ExponentialLR(self.optimizer, gamma=0.7)  #! also
        self.losses = []

    def unfreeze(self):
        self.body.requires_grad_(True)
        everything = [*self.body.parameters(), *self.head.parameters()]
        self.optimizer = torch.optim.Adam(everything, lr=self.fine_lr)  #! here
#+         self.scheduler = ExponentialLR(self.optimizer, gamma=0.7)

    def epoch(self, batches):
        for x, y in batches:
            loss = nn.functional.cross_entropy(self.head(self.body(x)), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.losses.append(loss.item())
        self.scheduler.step()  #! also


def make_batches(n=4, size=16):
    return [(torch.randn(size, 3, 8, 8), torch.randint(0, 5, (size,))) for _ in range(n)]


torch.manual_seed(314)
body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten())
session = FineTuning(body, nn.Linear(32, 5))
batches = make_batches()
for epoch in range(6):
    if epoch == 2:
        session.unfreeze()
    session.epoch(batches)
    print(epoch, session.losses[-1], session.optimizer.param_groups[0]["lr"])
