"""BP252 hook-registered-every-step."""

PROGRAMS = {
    "on a parameter": """
import torch
weight, seen = torch.ones(3, requires_grad=True), []
for _ in range(3):
    weight.register_hook(lambda grad: seen.append(grad.norm()))  # <- BP252
    weight.square().sum().backward()
    weight.grad = None
""",
    "in a method that is called in each step": """
import torch
from torch import nn

class Trainer:
    def __init__(self):
        self.net = nn.Linear(3, 1)
        self.seen = []

    def look(self, module, args, out):
        self.seen.append(out.mean().item())

    def step(self, rows):
        self.net.register_forward_hook(self.look)  # <- BP252
        self.net(rows).sum().backward()

trainer = Trainer()
for rows in torch.randn(3, 2, 3):
    trainer.step(rows)
""",
    "twice only": """
import torch
weight, seen = torch.ones(3, requires_grad=True), []
for _ in range(2):
    weight.register_hook(lambda grad: seen.append(grad.norm()))
    weight.square().sum().backward()
""",
    "several hooks before the first call": """
import torch
weight, seen = torch.ones(3, requires_grad=True), []
for power in range(4):
    weight.register_hook(lambda grad, power=power: seen.append(grad.norm() ** power))
weight.square().sum().backward()
""",
    "several hooks on a module before it is called": """
import torch
net, seen = torch.nn.Linear(3, 1), []
for power in range(4):
    net.register_forward_hook(lambda module, args, out: seen.append(out.norm()))
net(torch.ones(2, 3)).sum().backward()
net(torch.ones(2, 3)).sum().backward()
net(torch.ones(2, 3)).sum().backward()
""",
    "taken off before the next": """
import torch
weight, seen = torch.ones(3, requires_grad=True), []
for _ in range(4):
    handle = weight.register_hook(lambda grad: seen.append(grad.norm()))
    weight.square().sum().backward()
    handle.remove()
""",
    "different functions in turn": """
import torch
weight = torch.ones(3, requires_grad=True)

def one(grad): return None
def two(grad): return None
def three(grad): return None

for function in (one, two, three):
    weight.register_hook(function)
    weight.square().sum().backward()
""",
}
