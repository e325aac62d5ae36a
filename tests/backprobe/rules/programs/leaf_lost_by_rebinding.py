"""BP102 leaf-lost-by-rebinding."""

LOOP = """
import torch

model = torch.nn.Linear(3, 1)
x, y = torch.randn(20, 3), torch.randn(20, 1)
for _ in range(3):
    model.zero_grad()
    loss = (model(x) - y).pow(2).mean()
    loss.backward()
    {update}
"""

PROGRAMS = {
    "a loop's own name, under no_grad": LOOP.format(
        update="""with torch.no_grad():
        for name, p in model.named_parameters():
            p = p - 0.1 * p.grad  # <- BP102"""
    ),
    "a loop's own name, in a function": """
import torch


def descend(parameters, rate):
    for p in parameters:
        p = p - rate * p.grad  # <- BP102


model = torch.nn.Linear(3, 1)
x, y = torch.randn(20, 3), torch.randn(20, 1)
for _ in range(3):
    model.zero_grad()
    loss = (model(x) - y).pow(2).mean()
    loss.backward()
    descend(model.parameters(), 0.1)
""",
    "written back through the data": LOOP.format(
        update="""for p in model.parameters():
        new = p - 0.1 * p.grad
        p.data = new.data"""
    ),
    "what is bound is measured": LOOP.format(
        update="""for p in model.parameters():
        p = p - 0.1 * p.grad
        print(p.norm())"""
    ),
    "a name of another loop": LOOP.format(
        update="""for p in model.parameters():
        for q in (1, 2):
            p = p - 0.1 * q * p.grad if p.is_leaf else p
        print(p.norm())"""
    ),
    "what it makes goes nowhere, and no gradient goes into it": LOOP.format(
        update="""for p in model.parameters():
        p = p * 2  # <- BP102"""
    ),
    "without tracking, and the next call finds no history": """
import torch
model = torch.nn.Linear(3, 1).requires_grad_(False)
x = torch.randn(4, 3)
delta = torch.zeros(4, 3, requires_grad=True)
for _ in range(2):
    model(x + delta).pow(2).mean().backward()
    with torch.no_grad():
        delta = delta + 0.1 * delta.grad.sign()  # <- BP102
""",
    "the moved leaf has a name of its own before it is bounded": """
import torch
from torch import nn

net = nn.Linear(4, 1)
for p in net.parameters():
    p.requires_grad_(False)

def attack(images):
    delta = torch.zeros_like(images, requires_grad=True)
    for _ in range(3):
        net(images + delta).sum().backward()
        with torch.no_grad():
            step = 0.1 * delta.grad.sign()
            moved = delta + step
            delta = moved.clamp(-0.3, 0.3)  # <- BP102
    return images + delta.detach()

attack(torch.rand(5, 4))
""",
    "the moved leaf has a name of its own and is copied back": """
import torch
from torch import nn

net = nn.Linear(4, 1)
for p in net.parameters():
    p.requires_grad_(False)

def attack(images):
    delta = torch.zeros_like(images, requires_grad=True)
    for _ in range(3):
        net(images + delta).sum().backward()
        with torch.no_grad():
            step = 0.1 * delta.grad.sign()
            moved = delta + step
            delta.copy_(moved.clamp(-0.3, 0.3))
            delta.grad.zero_()
    return images + delta.detach()

attack(torch.rand(5, 4))
""",
    "the moved leaf has a name of its own and becomes a leaf": """
import torch
from torch import nn

net = nn.Linear(4, 1)
for p in net.parameters():
    p.requires_grad_(False)

def attack(images):
    delta = torch.zeros_like(images, requires_grad=True)
    for _ in range(3):
        net(images + delta).sum().backward()
        with torch.no_grad():
            step = 0.1 * delta.grad.sign()
            moved = delta + step
            delta = moved.clamp(-0.3, 0.3).requires_grad_()
    return images + delta.detach()

attack(torch.rand(5, 4))
""",
}
