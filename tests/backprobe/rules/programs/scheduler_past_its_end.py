"""BP769 scheduler-past-its-end."""

HEAD = """
import torch
from torch import nn
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = [torch.randn(4, 3) for _ in range(3)]
"""

PROGRAMS = {
    "one step more after the last epoch, by a callback": HEAD
    + """
class Rate:
    def __init__(self, optimizer, epochs, batches):
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, max_lr=0.1, epochs=epochs, steps_per_epoch=batches  # <- BP769
        )

    def after_batch(self):
        self.schedule.step()

callback = Rate(optimizer, 2, len(loader))
for epoch in range(3):
    for x in loader:
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        callback.after_batch()
""",
    "as many steps as it was told": HEAD
    + """
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=6)
for epoch in range(2):
    for x in loader:
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        schedule.step()
""",
    "caught, and told to the reader": HEAD
    + """
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=2)
for x in loader:
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
    try:
        schedule.step()
    except ValueError:
        print("the rate stays")
""",
}
