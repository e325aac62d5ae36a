"""BP710 scheduler-before-optimizer."""

HEAD = """
import torch
from torch import nn
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""

PROGRAMS = {
    "a schedule is only shown": HEAD
    + """
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
for _ in range(3):
    print(scheduler.get_last_lr())
    scheduler.step()
""",
    "no scheduler": HEAD
    + """
for x in torch.randn(3, 8, 3):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
""",
    "a metric is asked before training": HEAD
    + """
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
for x in torch.randn(3, 8, 3):
    scheduler.step(1.0)
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
""",
    "in a trainer, once per epoch": """
import torch
from torch import nn

class Trainer:
    def __init__(self):
        self.model = nn.Linear(3, 1)
        self.optim = torch.optim.AdamW(self.model.parameters(), lr=0.1)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optim, T_max=4)

    def epoch(self, batches):
        self.schedule.step()  # <- BP710
        for x in batches:
            self.optim.zero_grad()
            self.model(x).pow(2).mean().backward()
            self.optim.step()

trainer = Trainer()
for _ in range(3):
    trainer.epoch(torch.randn(2, 8, 3))
""",
}
