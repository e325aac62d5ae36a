# /// case
# title = "A meter keeps the graphs of all losses"
# category = "retention"
# kind = "graph-retained"
# kinds_also_ok = ["accumulated-graph"]
# severity = "warning"
# names = ["AverageMeter", "update", "sum"]
# symptom = "memory grows with the number of batches"
# symptom_check = "torch.is_tensor(stats['Loss/total'].sum) and stats['Loss/total'].sum.grad_fn is not None"
# cause = "tensors with a graph are summed for statistics"
# fix = "detach what is kept"
# evidence = [
#     { url = "https://github.com/visionml/pytracking/pull/313", title = "Fix memory leak in LTRTrainer._update_stats()." },
#     { url = "https://github.com/pnnl/neuromancer/pull/292", title = "Fixing leaking autograd graph memory in Trainer" },
# ]
# ///
from collections import OrderedDict

import torch
import torch.nn as nn


class AverageMeter:
    def __init__(self):
        self.val, self.sum, self.count = 0, 0, 0

    @property
    def avg(self):
        return self.sum / max(self.count, 1)

    def update(self, val, n=1):
        self.val = val
        self.sum = self.sum + val * n  #! also
        self.count += n


class LTRActor:
    def __init__(self, net, weights):
        self.net, self.weights = net, weights

    def __call__(self, data):
        bb, score = self.net(data["search"]).split([4, 1], dim=1)
        loss_bb = nn.functional.l1_loss(bb, data["anno"])
        loss_cls = nn.functional.binary_cross_entropy_with_logits(score, data["inside"])
        loss = self.weights["bb"] * loss_bb + self.weights["cls"] * loss_cls
        return loss, {"Loss/total": loss, "Loss/bb": loss_bb, "Loss/cls": loss_cls}  #- here
#+         return loss, {"Loss/total": loss.item(), "Loss/bb": loss_bb.item(), "Loss/cls": loss_cls.item()}


def update_stats(stats, new, batch_size):
    for name, val in new.items():
        stats.setdefault(name, AverageMeter()).update(val, batch_size)  #! also


torch.manual_seed(29)
net = nn.Sequential(nn.Linear(20, 40), nn.ReLU(), nn.Linear(40, 5))
actor = LTRActor(net, {"bb": 1.0, "cls": 0.5})
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
stats = OrderedDict()
for i in range(20):
    data = {"search": torch.randn(10, 20), "anno": torch.rand(10, 4), "inside": torch.randint(0, 2, (10, 1)).float()}
    loss, new = actor(data)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    update_stats(stats, new, 10)
print({name: float(meter.avg) for name, meter in stats.items()})
