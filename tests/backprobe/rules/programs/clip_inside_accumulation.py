"""BP766 clip-inside-accumulation."""

PROGRAMS = {
    "clipped by value after each of the micro-batches, in a trainer": """
import torch
from torch import nn

class Trainer:
    def __init__(self, model, every):
        self.model, self.every = model, every
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.seen = 0

    def backward(self, loss):
        (loss / self.every).backward()
        nn.utils.clip_grad_value_(self.model.parameters(), 0.01)  # <- BP766
        self.seen += 1

    def step(self, x):
        self.backward((self.model(x) - 3).pow(2).mean())
        if self.seen % self.every == 0:
            self.optimizer.step()
            self.optimizer.zero_grad()

trainer = Trainer(nn.Linear(4, 1), 3)
for x in torch.randn(9, 8, 4):
    trainer.step(x)
""",
    "each sample's gradient is clipped on its own and added elsewhere": """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in torch.randn(3, 5, 4):
    total = [torch.zeros_like(p) for p in model.parameters()]
    for x in batch:
        optimizer.zero_grad()
        (model(x) - 3).pow(2).sum().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        for sum_, p in zip(total, model.parameters()):
            sum_ += p.grad
    for sum_, p in zip(total, model.parameters()):
        p.grad = sum_ / len(batch)
    optimizer.step()
""",
    "once before each step": """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, x in enumerate(torch.randn(9, 8, 4)):
    ((model(x) - 3).pow(2).mean() / 3).backward()
    if i % 3 == 2:
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        optimizer.zero_grad()
""",
    "the norm of each is only watched": """
import torch
from torch import nn

model, norms = nn.Linear(4, 1), []
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, x in enumerate(torch.randn(9, 8, 4)):
    ((model(x) - 3).pow(2).mean() / 3).backward()
    norms.append(nn.utils.clip_grad_norm_(model.parameters(), float("inf")))
    if i % 3 == 2:
        optimizer.step()
        optimizer.zero_grad()
""",
    "a trainer's helper that clips, called for every micro-batch": """
import torch
from torch import nn
torch.manual_seed(0)
class Trainer:
    def __init__(self, net, every):
        self.net, self.every = net, every
        self.opt = torch.optim.SGD(net.parameters(), lr=0.1)
    def clip(self):
        nn.utils.clip_grad_norm_(self.net.parameters(), 0.05)
    def batch(self, x, y, i):
        (nn.functional.mse_loss(self.net(x), y) / self.every).backward()
        self.clip()  # <- BP766
        if (i + 1) % self.every == 0:
            self.opt.step()
            self.opt.zero_grad()
trainer = Trainer(nn.Linear(5, 2), 3)
for i in range(9):
    trainer.batch(torch.randn(4, 5), torch.randn(4, 2), i)
""",
}
