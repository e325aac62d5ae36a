# /// case
# title = "Running meter adds loss tensors with their graphs"
# category = "retention-leak"
# kind = "graph-carried-across-steps"
# kinds_also_ok = ["graph-retained-list", "graph-retained"]
# severity = "warning"
# names = ["total", "value", "meters", "update"]
# difficulty = "medium"
# symptom = "memory grows with every step of the epoch, no message"
# symptom_check = "torch.is_tensor(tracker.meters[\"loss\"].total) and tracker.meters[\"loss\"].total.requires_grad"
# cause = "Meter.update adds the loss tensor itself; the running total keeps the graph of every step alive"
# fix = "add value.item()"
# evidence = [{ url = "https://github.com/BatsResearch/labelmodels/issues/4" }, { url = "https://github.com/visionml/pytracking/pull/313" }, { url = "https://pytorch.org/docs/stable/notes/faq.html" }]
# ///
"""Character n-gram classifier with an epoch-level metric tracker."""
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Dict

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Meter:
    total: float = 0.0
    count: int = 0

    def update(self, value, n):
        self.total += value * n  #- here
#+         self.total += value.item() * n
        self.count += n

    @property
    def avg(self):
        return self.total / max(self.count, 1)


@dataclass
class Tracker:
    meters: Dict[str, Meter] = field(default_factory=lambda: defaultdict(Meter))

    def log(self, n, **values):
        for name, value in values.items():
            self.meters[name].update(value, n)  #! also

    def line(self):
        return "  ".join(f"{name} {meter.avg:.3f}" for name, meter in self.meters.items())


class Classifier(nn.Module):
    def __init__(self, vocab=28, dim=16, classes=3):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=0)
        self.conv = nn.Conv1d(dim, 24, 3, padding=1)
        self.out = nn.Linear(24, classes)

    def forward(self, ids):
        h = self.conv(self.embed(ids).transpose(1, 2)).relu()
        return self.out(h.amax(dim=2))


def corpus(n=240):
    ids = torch.randint(1, 28, (n, 12))
    return ids, (ids[:, :4].sum(1) % 3)


torch.manual_seed(0)
model = Classifier()
opt = torch.optim.RMSprop(model.parameters(), lr=1e-3)
ids, labels = corpus()
lines = []
for epoch in range(3):
    tracker = Tracker()
    for rows in torch.randperm(len(ids)).split(40):
        logits = model(ids[rows])
        loss = F.cross_entropy(logits, labels[rows], label_smoothing=0.05)
        opt.zero_grad()
        loss.backward()
        opt.step()
        hit = (logits.argmax(1) == labels[rows]).float().mean()
        tracker.log(len(rows), loss=loss, acc=hit)  #! also
    lines.append(f"epoch {epoch}: {tracker.line()}")
print("\n".join(lines))
