"""BP773 scheduler-in-two-loops."""

PROGRAMS = {
    "a trainer whose callback steps too": """
import torch
from torch import nn

class Trainer:
    def __init__(self, model):
        self.model = model
        self.opt = torch.optim.Adam(model.parameters(), lr=0.01)
        self.sched = torch.optim.lr_scheduler.ExponentialLR(self.opt, 0.99)

    def batch(self, x):
        self.opt.zero_grad()
        self.model(x).pow(2).mean().backward()
        self.opt.step()
        self.sched.step()

    def on_epoch_end(self):
        self.sched.step()  # <- BP773

    def fit(self, data, epochs):
        for _ in range(epochs):
            for x in data:
                self.batch(x)
            self.on_epoch_end()

Trainer(nn.Linear(3, 1)).fit(torch.randn(4, 8, 3), 3)
""",
    "right: by the batch while it warms up, by the epoch afterwards": """
import torch
from torch import nn

model = nn.Linear(3, 1)
opt = torch.optim.Adam(model.parameters(), lr=0.01)
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda step: min(1.0, (step + 1) / 10))
for epoch in range(5):
    for x in torch.randn(4, 8, 3):
        opt.zero_grad()
        model(x).pow(2).mean().backward()
        opt.step()
        if epoch < 2:
            sched.step()
    if epoch >= 2:
        sched.step()
""",
}
