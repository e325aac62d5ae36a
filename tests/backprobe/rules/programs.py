"""Programs beyond the manuals: each condition of a rule has one that fails without it.

A faulty program carries `# <- CODE` at each line that a finding at warning or above must stand at; no mark: silence.
"""

LOOP = """
for _ in range(3):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    encoder.zero_grad()
    (decoder(encoder(x)) - x).pow(2).mean().backward()
    optimizer.step()
"""
NETS = "import torch\nfrom torch import nn\nencoder, decoder = nn.Linear(4, 2), nn.Linear(2, 4)\n"

BP101 = {
    "a sibling output of the one that was differentiated": """
import torch
x = torch.ones(2, requires_grad=True)
a, b = x.unbind()
a.backward()
print(b.grad)
""",
    "a gradient of None is replaced where it is read": """
import torch
x = torch.ones(3, requires_grad=True)
hidden = x * 2
hidden.sum().backward()
shown = hidden.grad or 0
print(hidden.grad is not None and hidden.grad.norm())
""",
    "a gradient is tested as it is named": """
import torch
x = torch.ones(3, requires_grad=True)
hidden = x * 2
hidden.sum().backward()
if (g := hidden.grad) is not None:
    print(g)
if g := hidden.grad:
    print(g)
""",
    "a read behind a test of the same gradient": """
import torch
x = torch.ones(3, requires_grad=True)
hidden = x * 2
hidden.sum().backward()
for t in (x, hidden):
    if t.grad is None:
        print("none")
    print(t.grad)
""",
    "a test that skips the tensor": """
import torch
x = torch.ones(3, requires_grad=True)
hidden = x * 2
hidden.sum().backward()
for t in (x, hidden):
    if t.grad is None:
        continue
    print(t.grad.norm())
""",
    "a test of another gradient guards nothing": """
import torch
x = torch.ones(3, requires_grad=True)
hidden = x * 2  # <- BP101
hidden.sum().backward()
if x.grad is None:
    print("none")
print(hidden.grad)
""",
    "inputs= stores it in a non-leaf": """
import torch
x = torch.ones(3, requires_grad=True)
hidden = x * 2
hidden.sum().backward(inputs=[hidden])
print(hidden.grad)
""",
    "a leaf is its own root": """
import torch
x = torch.ones((), requires_grad=True)
x.backward()
x.grad = None
print(x.grad)
""",
    "retained after one call, read after the next": """
import torch
x = torch.ones(3, requires_grad=True)
hidden = x * 2
hidden.sum().backward(retain_graph=True)
hidden.retain_grad()
hidden.sum().backward()
print(hidden.grad)
""",
    "the read is in a branch for what is no leaf": """
import torch
x = torch.ones(3, requires_grad=True)
hidden = x * 2
hidden.sum().backward()
if not hidden.is_leaf:
    print(hidden.grad)
""",
    "only autograd.grad went through, then backward elsewhere": """
import torch
x = torch.ones(3, requires_grad=True)
hidden = x * 2
torch.autograd.grad(hidden.sum(), x)
(x * 3).sum().backward()
print(hidden.grad)
""",
    "the call does not come through the tensor": """
import torch
x = torch.ones(3, requires_grad=True)
hidden = x * 2
x.sum().backward()
print(hidden.grad)
""",
    "the call raised before it came there": """
import torch
x = torch.ones(3, requires_grad=True)
hidden = x.exp()
out = hidden * 2
hidden.add_(1)
try:
    hidden.exp().sum().backward(torch.ones(5))
except RuntimeError:
    pass
print(hidden.grad)
""",
    "a root is read": """
import torch
x = torch.ones(3, requires_grad=True)
loss = (x * 2).sum()  # <- BP101
loss.backward()
print(loss.grad)
""",
    "a read in a loop is one finding": """
import torch
x = torch.ones(3, requires_grad=True)
for _ in range(4):
    hidden = x * 2  # <- BP101
    hidden.sum().backward()
    print(hidden.grad)
""",
    "a condition reads the gradient itself": """
import torch
x = torch.ones(3, requires_grad=True)
hidden = x * 2  # <- BP101
hidden.sum().backward()
try:
    if hidden.grad.norm() > 1:
        print("large")
except AttributeError:
    print("none")
""",
    "a view, bound under another name later": """
import torch
x = torch.ones(3, requires_grad=True)
first = x[0]  # <- BP101
again = first
again.backward()
print(first.grad)
""",
    "a leaf whose gradient is None is not this rule's": """
import torch
x = torch.ones(3, requires_grad=True)
y = torch.ones(3, requires_grad=True)
x.sum().backward()
print(y.grad)
""",
    "None is told by comparison in an expression": """
import torch
x = torch.ones(3, requires_grad=True)
hidden = x * 2
hidden.sum().backward()
print(hidden.grad is None)
""",
    "None is handled after it was bound": """
import torch
x = torch.ones(3, requires_grad=True)
hidden = x * 2
hidden.sum().backward()
for tensor in (x, hidden):
    grad = tensor.grad
    if grad is None:
        continue
    print(grad)
""",
    "the flag is set to False in the factory": """
import torch
w = torch.ones(3, requires_grad=False).double().requires_grad_()
moved = w.float()  # <- BP101
moved.sum().backward()
print(moved.grad)
""",
}

BP301 = {
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

BP325 = {
    "a step on fast weights": """
import torch
w = torch.ones(3, requires_grad=True)
fast = w.clone()
(g,) = torch.autograd.grad((fast * 2).pow(2).mean(), fast)
fast = fast - 0.1 * g
outer = (fast * 3).pow(2).mean()
outer.backward()
""",
    "steps on several fast weights": """
import torch
w = [torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)]
fast = [one.clone() for one in w]
for _ in range(2):
    loss = sum((one * 2).pow(2).mean() for one in fast)
    grads = torch.autograd.grad(loss, fast)
    fast = [one - 0.1 * g for one, g in zip(fast, grads)]
outer = sum((one * 3).pow(2).mean() for one in fast)
outer.backward()
""",
    "a penalty that a function returns as one expression": """
import torch

def penalty(model, x):
    out = model(x).sum()
    (g,) = torch.autograd.grad(out, x, retain_graph=True)  # <- BP325
    return ((g.norm(dim=1) - 1) ** 2).mean()

model = torch.nn.Linear(3, 1)
x = torch.ones(2, 3, requires_grad=True)
gp = penalty(model, x)
loss = model(x).pow(2).mean() + 10 * gp
loss.backward()
""",
    "a loss that a function returns as one expression": """
import torch

def critic(model, x):
    out = model(x).sum()
    (g,) = torch.autograd.grad(out, x, retain_graph=True)  # <- BP325
    return out + ((g.norm(dim=1) - 1) ** 2).mean()

model = torch.nn.Linear(3, 1)
x = torch.ones(2, 3, requires_grad=True)
loss = critic(model, x)
loss.backward()
""",
    "one expression": """
import torch
model = torch.nn.Linear(3, 1)
x = torch.ones(2, 3, requires_grad=True)
out = model(x).pow(2).sum()
penalty = torch.autograd.grad(out, x, retain_graph=True)[0].pow(2).sum()  # <- BP325
loss = out + penalty
(loss / 2).backward()
""",
    "by a helper, create_graph False written out": """
import torch
from torch.autograd import grad

def slope(value, at):
    return grad(value, at, create_graph=False, retain_graph=True)[0]  # <- BP325

model = torch.nn.Linear(3, 1)
x = torch.ones(2, 3, requires_grad=True)
out = model(x).pow(2).sum()
g = slope(out, x)
loss = out + (g.norm(dim=1) - 1).pow(2).mean()
loss.backward()
""",
    "the gradient has another name inside a helper": """
import torch

def slope(value, at):
    (inner,) = torch.autograd.grad(value, at, retain_graph=True)  # <- BP325
    return inner

model = torch.nn.Linear(3, 1)
x = torch.ones(2, 3, requires_grad=True)
out = model(x).pow(2).sum()
g = slope(out, x)
loss = out + g.norm()
loss.backward()
""",
    "an untrained factor lies before the root": """
import torch
model = torch.nn.Linear(3, 1)
x = torch.ones(2, 3, requires_grad=True)
scale = torch.ones(1, requires_grad=True)
out = model(x).pow(2).sum()
(g,) = torch.autograd.grad(out, x, retain_graph=True)  # <- BP325
loss = out + g.norm()
(loss * scale).sum().backward()
""",
    "the value is never differentiated": """
import torch
model = torch.nn.Linear(3, 1)
x = torch.ones(2, 3, requires_grad=True)
out = model(x).pow(2).sum()
(g,) = torch.autograd.grad(out, x, retain_graph=True)
shown = out + g.norm()
out.backward()
""",
    "made under no_grad it is a weight": """
import torch
x = torch.ones(3, requires_grad=True)
losses = x**2
(g,) = torch.autograd.grad(losses.sum(), x, retain_graph=True)
with torch.no_grad():
    weights = g.abs() / g.abs().sum()
loss = (weights * losses).sum()
loss.backward()
""",
    "functional weights: the attack goes through a matrix product": """
import torch
weight = torch.ones(3, 1, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
x = torch.ones(2, 3)
for _ in range(2):
    x = x.detach().requires_grad_()
    (g,) = torch.autograd.grad((x @ weight).sum(), x)
    attacked = x + 0.1 * g.sign()
    loss = (attacked @ weight).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "a second call that raised is not explained by a later gradient": """
import torch
x = torch.ones(3, requires_grad=True)
y = torch.ones(3)
try:
    y.sum().backward()
except RuntimeError:
    pass
(g,) = torch.autograd.grad((x**2).sum(), x)
print(g)
""",
    "a gradient penalty that is right": """
import torch
model = torch.nn.Linear(3, 1)
x = torch.ones(2, 3, requires_grad=True)
out = model(x).pow(2).sum()
(g,) = torch.autograd.grad(out, x, create_graph=True)
(out + g.norm()).backward()
""",
    "several gradients at once": """
import torch
model = torch.nn.Linear(3, 1)
x = torch.ones(2, 3, requires_grad=True)
z = torch.ones(2, 3, requires_grad=True)
out = (model(x) * model(z)).sum()
grads = torch.autograd.grad(out, (x, z), retain_graph=True)  # <- BP325
penalty = sum(g.pow(2).sum() for g in grads)
loss = out + penalty
loss.backward()
""",
}

BP401 = {
    "one of two changes has no other form: no fix is offered": """
import torch
x = torch.ones(3, requires_grad=True)
y = x.exp()
y[0] = 0.0
y.mul_(2)  # <- BP401
y.sum().backward()
""",
    "a method without an underscore's twin": """
import torch
x = torch.ones(3, requires_grad=True)
y = x.exp()
y.zero_()  # <- BP401
y.sum().backward()
""",
    "an attribute": """
import torch

class Cell:
    def __init__(self, x):
        self.y = x.exp()
        self.y *= 2  # <- BP401

x = torch.ones(3, requires_grad=True)
Cell(x).y.sum().backward()
""",
    "augmented assignment": """
import torch
x = torch.ones(3, requires_grad=True)
y = x.exp()
y += 1  # <- BP401
y.sum().backward()
""",
    "a store into a slice": """
import torch
x = torch.ones(3, requires_grad=True)
y = x.exp()
y[0] = 0.0  # <- BP401
y.sum().backward()
""",
    "through a view": """
import torch
x = torch.ones(4, requires_grad=True)
y = x.exp()
row = y.view(2, 2)
row.mul_(2)  # <- BP401
y.sum().backward()
""",
    "several changes: the last one before the call": """
import torch
x = torch.ones(3, requires_grad=True)
y = x.exp()
y.mul_(2)
y.add_(1)  # <- BP401
loss = y.sum()
z = torch.ones(3)
z.add_(1)
loss.backward()
""",
    "another tensor of that shape is changed as often": """
import torch
x = torch.ones(3, requires_grad=True)
free = x + 1
y = x.exp()
free.mul_(2)
y.mul_(2)  # <- BP401
free.mul_(1)
(y.sum() + free.sum()).backward()
""",
    "a later change is not the cause": """
import torch
x = torch.ones(3, requires_grad=True)
y = x.exp()
y.mul_(2)  # <- BP401
loss = y.sum()
try:
    loss.backward()
finally:
    with torch.no_grad():
        y.add_(1)
""",
    "the right hand side needs parentheses": """
import torch
x = torch.ones(3, requires_grad=True)
y = x.exp()
y *= x + 1  # <- BP401
y.sum().backward()
""",
}

BP701 = {
    "written in place through .data": NETS
    + """
optimizer = torch.optim.SGD(decoder.parameters(), lr=0.1)
for _ in range(3):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    encoder.zero_grad()
    (decoder(encoder(x)) - x).pow(2).mean().backward()
    optimizer.step()
    for p in encoder.parameters():
        p.data.sub_(p.grad, alpha=0.1)
""",
    "the first of two lacks a part of its own module": NETS
    + """
net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
first = torch.optim.SGD(net[0].parameters(), lr=0.1)  # <- BP701
second = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)
for _ in range(3):
    x = torch.randn(8, 4)
    first.zero_grad()
    second.zero_grad()
    (decoder(encoder(net(x))) - x).pow(2).mean().backward()
    first.step()
    second.step()
""",
    "a run that stopped after three steps": NETS
    + """
optimizer = torch.optim.SGD(decoder.parameters(), lr=0.1)  # <- BP701
"""
    + LOOP
    + "raise SystemExit(1)\n",
    "two that are left out": NETS
    + """
third = nn.Linear(4, 4)
optimizer = torch.optim.SGD(decoder.parameters(), lr=0.1)  # <- BP701
for _ in range(3):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    (decoder(encoder(third(x))) - x).pow(2).mean().backward()
    optimizer.step()
""",
    "the module is not visible where the optimizer is built": NETS
    + """
def build(params):
    return torch.optim.SGD(params, lr=0.1)

optimizer = build(decoder.parameters())  # <- BP701
"""
    + LOOP,
    "the rest is filtered out by a comprehension": NETS
    + """
named = [*encoder.named_parameters(), *decoder.named_parameters()]
chosen = [p for _, p in named if p.shape != (2, 4)]  # <- BP701
optimizer = torch.optim.SGD(chosen, lr=0.1)
"""
    + LOOP,
    "a list named before": NETS
    + """
chosen = list(decoder.parameters())  # <- BP701
optimizer = torch.optim.SGD(chosen, lr=0.1)
"""
    + LOOP,
    "given by its name, in groups": NETS
    + """
optimizer = torch.optim.SGD(
    params=[{"params": decoder.parameters()}],  # <- BP701
    lr=0.1,
)
"""
    + LOOP,
    "written through .data": NETS
    + """
optimizer = torch.optim.SGD(decoder.parameters(), lr=0.1)
for _ in range(3):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    encoder.zero_grad()
    (decoder(encoder(x)) - x).pow(2).mean().backward()
    optimizer.step()
    for p in encoder.parameters():
        p.data -= 0.1 * p.grad
""",
    "gradients are logged, not used": NETS
    + """
optimizer = torch.optim.SGD(decoder.parameters(), lr=0.1)  # <- BP701
for _ in range(3):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    encoder.zero_grad()
    (decoder(encoder(x)) - x).pow(2).mean().backward()
    optimizer.step()
    print([p.grad.norm().item() for p in encoder.parameters()])
""",
    "one step is no pattern": NETS
    + """
optimizer = torch.optim.SGD(decoder.parameters(), lr=0.1)
x = torch.randn(8, 4)
(decoder(encoder(x)) - x).pow(2).mean().backward()
optimizer.step()
""",
    "two steps of a run cut short prove nothing": NETS
    + """
optimizer = torch.optim.SGD(decoder.parameters(), lr=0.1)
for step in range(3):
    x = torch.randn(8, 4)
    if step == 2:
        raise SystemExit(1)
    optimizer.zero_grad()
    (decoder(encoder(x)) - x).pow(2).mean().backward()
    optimizer.step()
""",
    "frozen after a while": NETS
    + """
optimizer = torch.optim.SGD(decoder.parameters(), lr=0.1)
"""
    + LOOP
    + "encoder.requires_grad_(False)\n"
    + LOOP,
    "an optimizer that never steps lacks nothing": NETS
    + """
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
unused = torch.optim.SGD(decoder.parameters(), lr=0.1)
for _ in range(3):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    decoder.zero_grad()
    (decoder(encoder(x)) - x).pow(2).mean().backward()  # <- BP706
    optimizer.step()
""",
    "the module of several that has no optimizer": NETS
    + """
third = nn.Linear(4, 4)
first = torch.optim.SGD(decoder.parameters(), lr=0.1)
second = torch.optim.SGD(third.parameters(), lr=0.1)  # <- BP701
for _ in range(3):
    x = torch.randn(8, 4)
    first.zero_grad()
    (decoder(x[:, :2]) - x).pow(2).mean().backward()
    first.step()
    second.zero_grad()
    (third(encoder(x).repeat(1, 2)) - x).pow(2).mean().backward()
    second.step()
""",
    "a part of one module, chosen by its parent": """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return self.head(self.body(x))

class Trainer:
    def __init__(self, net):
        self.net = net
        self.optimizer = torch.optim.SGD(net.head.parameters(), lr=0.1)  # <- BP701

    def fit(self):
        for _ in range(3):
            x = torch.randn(8, 4)
            self.optimizer.zero_grad()
            (self.net(x) - x).pow(2).mean().backward()
            self.optimizer.step()

Trainer(Net()).fit()
""",
}

PROGRAMS = {f"{code}: {name}": text.lstrip("\n") for code, group in (
    ("BP101", BP101), ("BP301", BP301), ("BP325", BP325), ("BP401", BP401), ("BP701", BP701)
) for name, text in group.items()}  # fmt: skip
