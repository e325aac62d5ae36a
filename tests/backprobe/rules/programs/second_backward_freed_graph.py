"""BP301 second-backward-freed-graph."""

PROGRAMS = {
    "two functions: neither sees the other's names": """
import torch

def one(value):
    first = value.sum()
    first.backward()

def two(value):
    second = value.mean()
    second.backward()  # <- BP301

trunk = torch.ones(3, requires_grad=True).exp()
one(trunk)
two(trunk)
""",
    "a call that shares its line": """
import torch
trunk = torch.ones(3, requires_grad=True).exp()
a, b = trunk.sum(), trunk.mean()
a.backward(); print("walked")
b.backward()  # <- BP301
""",
    "three calls, the last freed by the first": """
import torch
x = torch.ones(3, requires_grad=True)
trunk = x * x
a, b, c = trunk.sum(), (x + 1).sum(), trunk.mean()
a.backward()
b.backward()
c.backward()  # <- BP301
""",
    "the same root twice": """
import torch
x = torch.ones(3, requires_grad=True)
loss = (x * x).sum()
loss.backward()
loss.backward()  # <- BP301
""",
    "the same root twice, and the first gradient is kept": """
import torch
x = torch.ones(3, requires_grad=True)
loss = (x * x).sum()
loss.backward()
first = x.grad.clone()
x.grad = None
loss.backward()  # <- BP301
""",
    "the same root twice, for two leaves": """
import torch
x = torch.ones(3, requires_grad=True)
y = torch.ones(3, requires_grad=True)
loss = (x * y).sum()
loss.backward(inputs=[x])
loss.backward(inputs=[y])  # <- BP301
""",
    "autograd.grad frees too": """
import torch
x = torch.ones(3, requires_grad=True)
loss = (x * x).sum()
torch.autograd.grad(loss, x)
loss.backward()  # <- BP301
""",
    "in a helper of its own": """
import torch

def walk(loss):
    loss.backward()  # <- BP301

x = torch.ones(3, requires_grad=True)
trunk = x.exp()
walk(trunk.sum())
walk(trunk.mean())
""",
    "two calls in one block on one line each, in a condition": """
import torch
x = torch.ones(3, requires_grad=True)
trunk = x.exp()
if True:
    trunk.sum().backward()
trunk.mean().backward()  # <- BP301
""",
    "a flag is given": """
import torch
x = torch.ones(3, requires_grad=True)
trunk = x.exp()
trunk.sum().backward(retain_graph=False)
trunk.mean().backward()  # <- BP301
""",
}
