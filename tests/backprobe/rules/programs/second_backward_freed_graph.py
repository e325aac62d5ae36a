"""BP301 second-backward-freed-graph."""

SHAPES = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
"""

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
torch.autograd.grad(loss, x)  # <- BP301
loss.backward()
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
    "saliency by grad() before backward()": SHAPES
    + """
net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    x = torch.randn(8, 6, requires_grad=True)
    loss = F.cross_entropy(net(x), torch.randint(0, 3, (8,)))
    saliency = torch.autograd.grad(loss, x)[0].abs().mean()  # <- BP301
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, saliency.item())
""",
    "a trainer's method logs the gradient norm of the last layer": SHAPES
    + """
from torch.autograd import grad

class Trainer:
    def __init__(self):
        self.body, self.last = nn.Sequential(nn.Linear(6, 8), nn.ReLU()), nn.Linear(8, 2)
        self.opt = torch.optim.Adam([*self.body.parameters(), *self.last.parameters()])
        self.log = []

    def norm_at_last(self, loss):
        g = grad(loss, self.last.weight)[0]  # <- BP301
        return g.norm().item()

    def step(self, x, y):
        loss = F.cross_entropy(self.last(self.body(x)), y)
        self.log.append(self.norm_at_last(loss))
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

t = Trainer()
for _ in range(3):
    t.step(torch.randn(8, 6), torch.randint(0, 2, (8,)))
""",
}
