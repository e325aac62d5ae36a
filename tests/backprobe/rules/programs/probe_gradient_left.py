"""BP215 probe-gradient-left."""

HEAD = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.05)
"""

PROGRAMS = {
    "the norm of a gradient is printed once, before training": HEAD
    + """
def sanity_check(x):
    loss = model(x).pow(2).mean()
    loss.backward()
    print(float(torch.stack([p.grad.norm() for p in model.parameters()]).norm()))
sanity_check(torch.randn(8, 4))  # <- BP215
for x in torch.randn(4, 8, 4):
    model(x).pow(2).mean().backward()
    opt.step()
    opt.zero_grad()
""",
    "a trainer's method asks how much an input matters": """
import torch
from torch import nn
torch.manual_seed(0)
class Trainer:
    def __init__(self):
        self.model = nn.Linear(4, 1)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=0.01)
    def importance(self, x):
        probe = x.clone().requires_grad_()
        self.model(probe).sum().backward()
        return probe.grad.abs().mean(0)
    def step(self, x):
        self.opt.zero_grad()  # <- BP215
        weight = self.importance(x)
        loss = (self.model(x * weight) - 1).pow(2).mean()
        loss.backward()
        self.opt.step()
trainer = Trainer()
for x in torch.randn(4, 8, 4):
    trainer.step(x)
""",
    "a probe that looks at a parameter before its input": HEAD
    + """
def probe(x):
    x = x.clone().requires_grad_()
    model(x).sum().backward()
    return float(model[0].weight.grad.norm()), x.grad
for x in torch.randn(4, 8, 4):
    opt.zero_grad()  # <- BP215
    norm, seen = probe(x)
    model(x * seen).pow(2).mean().backward()
    opt.step()
""",
    "one step on what two functions walked back": HEAD
    + """
def first(x):
    model(x).pow(2).mean().backward()
    print(float(model[0].weight.grad.norm()))
first(torch.randn(8, 4))
model(torch.randn(8, 4)).abs().mean().backward()
opt.step()
""",
    "a further loss in the middle of training, with its norm": HEAD
    + """
def further(x):
    (0.1 * model(x).abs().mean()).backward()
    print(float(model[0].weight.grad.norm()))
for step, x in enumerate(torch.randn(5, 8, 4)):
    opt.zero_grad()
    if step == 3:
        further(x)
    model(x).pow(2).mean().backward()
    opt.step()
""",
    "the check before training is cleared": HEAD
    + """
def sanity_check(x):
    model(x).pow(2).mean().backward()
    print(float(model[0].weight.grad.norm()))
    model.zero_grad()
sanity_check(torch.randn(8, 4))
for x in torch.randn(4, 8, 4):
    model(x).pow(2).mean().backward()
    opt.step()
    opt.zero_grad()
""",
    "micro-batches in a function that logs their norm": HEAD
    + """
def micro(x):
    (model(x).pow(2).mean() / 2).backward()
    return float(model[0].weight.grad.norm())
for x in torch.randn(4, 2, 8, 4):
    opt.zero_grad()
    norms = [micro(one) for one in x]
    opt.step()
""",
    "training on clean and attacked inputs together, in the loop": HEAD
    + """
for x in torch.randn(4, 8, 4):
    x.requires_grad_(True)
    opt.zero_grad()
    model(x).pow(2).mean().backward()
    attacked = (x + 0.1 * x.grad.sign()).detach()
    model(attacked).pow(2).mean().backward()
    opt.step()
""",
    "an attack in several steps, behind the clear": HEAD
    + """
def attacked(net, x, steps=3):
    delta = torch.zeros_like(x).uniform_(-0.1, 0.1).requires_grad_(True)
    for _ in range(steps):
        net(x + delta).pow(2).mean().backward()
        with torch.no_grad():
            delta += 0.05 * delta.grad.sign()
        delta.grad.zero_()
    return (x + delta).detach()

def train_step(net, opt, x):
    opt.zero_grad()  # <- BP215
    harder = attacked(net, x)
    assert not harder.requires_grad
    loss = (net(harder) - 1).pow(2).mean()
    loss.backward()
    opt.step()

for x in torch.randn(4, 8, 4):
    train_step(model, opt, x)
with torch.no_grad():
    print(model(torch.zeros(1, 4)))
""",
    "an attack in several steps, before the clear": HEAD
    + """
def attacked(net, x, steps=3):
    delta = torch.zeros_like(x).uniform_(-0.1, 0.1).requires_grad_(True)
    for _ in range(steps):
        net(x + delta).pow(2).mean().backward()
        with torch.no_grad():
            delta += 0.05 * delta.grad.sign()
        delta.grad.zero_()
    return (x + delta).detach()

def train_step(net, opt, x):
    assert net.training
    harder = attacked(net, x)
    opt.zero_grad()
    loss = (net(harder) - 1).pow(2).mean()
    loss.backward()
    opt.step()

for x in torch.randn(4, 8, 4):
    train_step(model, opt, x)
with torch.no_grad():
    print(model(torch.zeros(1, 4)))
""",
    "a gradient by hand, beside a helper that trains too": """
import torch
torch.manual_seed(0)
w, b = torch.randn(4, 1, requires_grad=True), torch.zeros(1, requires_grad=True)

def first(x):
    (x @ w + b).pow(2).mean().backward()
    return float(b.grad.norm())

for x in torch.randn(4, 8, 4):
    print(first(x))
    (x @ w).abs().mean().backward()
    with torch.no_grad():
        for p in (w, b):
            p -= 0.1 * p.grad
            p.grad = None
""",
    "an attack of several steps that writes its perturbation in place": """
import torch
import torch.nn.functional as F
from torch import nn

def attacked(model, x, y, steps=3):
    delta = torch.zeros_like(x).uniform_(-0.1, 0.1).requires_grad_(True)
    for _ in range(steps):
        F.cross_entropy(model(x + delta), y).backward()
        with torch.no_grad():
            delta += 0.1 * delta.grad.sign()
            delta.clamp_(-0.2, 0.2)
        delta.grad.zero_()
    return (x + delta).detach()

def train_step(model, optimizer, x, y):
    optimizer.zero_grad()  # <- BP215
    loss = F.cross_entropy(model(attacked(model, x, y)), y)
    loss.backward()
    optimizer.step()

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for x in torch.randn(4, 8, 4):
    train_step(model, optimizer, x, (x.sum(1) > 0).long())
""",
    "right: the attack of several steps asks for its own gradient alone": """
import torch
import torch.nn.functional as F
from torch import nn

def attacked(model, x, y, steps=3):
    delta = torch.zeros_like(x).uniform_(-0.1, 0.1).requires_grad_(True)
    for _ in range(steps):
        (slope,) = torch.autograd.grad(F.cross_entropy(model(x + delta), y), delta)
        with torch.no_grad():
            delta += 0.1 * slope.sign()
            delta.clamp_(-0.2, 0.2)
    return (x + delta).detach()

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for x in torch.randn(4, 8, 4):
    y = (x.sum(1) > 0).long()
    optimizer.zero_grad()
    F.cross_entropy(model(attacked(model, x, y)), y).backward()
    optimizer.step()
""",
    "cleared at the end of the turn before": HEAD
    + """
def saliency(x):
    x = x.clone().requires_grad_()
    model(x).sum().backward()
    return x.grad.abs()
for x in torch.randn(4, 8, 4):
    seen = saliency(x)  # <- BP215
    model(x * seen).pow(2).mean().backward()
    opt.step()
    opt.zero_grad()
""",
}
