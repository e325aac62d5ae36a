"""BP211 zero-grad-inside-accumulation."""

PROGRAMS = {
    "a trainer's method, in a run so long that not every step is recorded": """
import torch
from torch import nn

class Trainer:
    def __init__(self, model, parts=4):
        self.model, self.parts = model, parts
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def accumulate(self, x, y):
        for rows, wanted in zip(x.chunk(self.parts), y.chunk(self.parts)):
            self.optimizer.zero_grad(set_to_none=True)  # <- BP211
            (nn.functional.mse_loss(self.model(rows), wanted) / self.parts).backward()

    def fit(self, x, y, steps):
        for _ in range(steps):
            self.accumulate(x, y)
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()

torch.manual_seed(0)
x = torch.randn(32, 3)
Trainer(nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))).fit(x, x.sum(1, keepdim=True), 150)
""",
    "a loop over tasks, whose number comes from a list": """
import torch
from torch import nn

def train(model, tasks, rounds):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(rounds):
        for x, y in tasks:
            model.zero_grad()  # <- BP211
            (nn.functional.mse_loss(model(x), y) / len(tasks)).backward()
        optimizer.step()

torch.manual_seed(0)
tasks = [(x, x.sum(1, keepdim=True) * scale) for x, scale in zip(torch.randn(3, 16, 4), (0.5, 1.0, 2.0))]
train(nn.Linear(4, 1), tasks, 150)
""",
    "a closure that clears, called for each part": """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

def part(x):
    optimizer.zero_grad()  # <- BP211
    loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean() / 2
    loss.backward()
    return loss.item()

for turn in range(200):
    x = torch.randn(16, 4)
    value = part(x[:8]) + part(x[8:])
    optimizer.step()
""",
    "two optimizers, one of them cleared in the loop": """
import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Linear(4, 6), nn.Linear(6, 1)
slow = torch.optim.SGD(body.parameters(), lr=0.01)
fast = torch.optim.SGD(head.parameters(), lr=0.05)
for turn in range(120):
    slow.zero_grad()
    for x in torch.randn(3, 8, 4):
        fast.zero_grad()  # <- BP211
        ((head(body(x).tanh()) - x.sum(1, keepdim=True)).pow(2).mean() / 3).backward()
    slow.step()
    fast.step()
""",
    "cleared once before the loop, in a long run": """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for turn in range(200):
    optimizer.zero_grad()
    for x in torch.randn(4, 8, 4):
        ((model(x) - x.sum(1, keepdim=True)).pow(2).mean() / 4).backward()
    optimizer.step()
""",
    "a step after each part, in a long run": """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for turn in range(60):
    for x in torch.randn(4, 8, 4):
        optimizer.zero_grad()
        (model(x) - x.sum(1, keepdim=True)).pow(2).mean().backward()
        optimizer.step()
""",
    "a loop that searches for an input, before the step that trains": """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for turn in range(60):
    x = torch.randn(8, 4)
    delta = torch.zeros_like(x, requires_grad=True)
    for _ in range(3):
        optimizer.zero_grad()
        (-(model(x + delta) - x.sum(1, keepdim=True)).pow(2).mean()).backward()
        delta.data += 0.1 * delta.grad.sign()
        delta.grad = None
    optimizer.zero_grad()
    (model(x + delta.detach()) - x.sum(1, keepdim=True)).pow(2).mean().backward()
    optimizer.step()
""",
}
