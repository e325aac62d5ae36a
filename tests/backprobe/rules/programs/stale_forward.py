"""BP310 stale-forward."""

PROGRAMS = {
    "one of two leaves is used before the loop": """
import torch
scale = torch.ones(3, requires_grad=True)
head = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([scale, head], lr=0.1)
table = torch.sin(torch.arange(3.0) * scale)  # <- BP310
for x in torch.ones(5, 3):
    loss = (x + table + head).pow(2).mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
""",
    "a loss that a trainer keeps": """
import torch
from torch import nn
class Trainer:
    def __init__(self):
        self.net = nn.Linear(3, 1)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.loss = self.net(torch.randn(8, 3)).mean()  # <- BP310
    def step(self):
        self.optimizer.zero_grad()
        self.loss.backward(retain_graph=True)
        self.optimizer.step()
trainer = Trainer()
for _ in range(5):
    trainer.step()
""",
    "each output's own gradient, without a step in between": """
import torch
from torch import nn
net = nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
out = net(torch.randn(6, 4))
norms = []
for column in range(3):
    opt.zero_grad()
    out[:, column].sum().backward(retain_graph=True)
    norms.append(float(net.weight.grad.norm()))
opt.step()
""",
    "an old loss is looked at beside each step": """
import torch
from torch import nn
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
first = net(torch.ones(6, 4)).pow(2).mean()
for x in torch.randn(4, 6, 4):
    opt.zero_grad()
    (old,) = torch.autograd.grad(first, net.bias, retain_graph=True)
    net(x).pow(2).mean().backward()
    print(float((old * net.bias.grad).sum()))
    opt.step()
""",
    "features that two heads share, each step anew": """
import torch
from torch import nn
body, one, two = nn.Linear(4, 4), nn.Linear(4, 1), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*body.parameters(), *one.parameters(), *two.parameters()], lr=0.1)
for x in torch.randn(4, 8, 4):
    features = torch.tanh(body(x))
    optimizer.zero_grad()
    one(features).pow(2).mean().backward(retain_graph=True)
    two(features).pow(2).mean().backward()
    optimizer.step()
""",
    "a closure walks the loss of its step again": """
import torch
from torch import nn
torch.manual_seed(0)
net, x = nn.Sequential(nn.Linear(4, 1), nn.Tanh()), torch.randn(20, 4)
y = x.sum(1, keepdim=True).sin()
opt = torch.optim.LBFGS(net.parameters(), lr=0.5, max_iter=6)
for epoch in range(3):
    loss = nn.functional.mse_loss(net(x), y)  # <- BP310
    def closure():
        opt.zero_grad()
        loss.backward(retain_graph=True)
        return loss
    opt.step(closure)
""",
    "one step alone, and a line search": """
import torch
torch.manual_seed(0)
image = torch.nn.Parameter(torch.rand(8))
goal = torch.linspace(0, 1, 8)
optimizer = torch.optim.LBFGS([image], max_iter=10, line_search_fn="strong_wolfe")
error = (image - goal).square().sum() + image.exp().sum()  # <- BP310
def evaluate():
    optimizer.zero_grad()
    error.backward(retain_graph=True)
    return error
optimizer.step(evaluate)
""",
    "a closure method, and outputs that were computed before it": """
import torch
from torch import nn
class Fitter:
    def __init__(self):
        torch.manual_seed(0)
        self.net = nn.Linear(5, 2)
        self.optimizer = torch.optim.LBFGS(self.net.parameters(), max_iter=5)
    def evaluate(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(self.out, self.y)
        loss.backward(retain_graph=True)
        return loss
    def fit(self, x, y):
        self.y = y
        for _ in range(3):
            self.out = self.net(x)  # <- BP310
            self.optimizer.step(closure=self.evaluate)
fitter = Fitter()
fitter.fit(torch.randn(30, 5), torch.randint(0, 2, (30,)))
""",
    "a constant part of a closure's loss is computed outside": """
import torch
from torch import nn
torch.manual_seed(0)
body, head = nn.Linear(4, 6), nn.Linear(6, 1)
x, y = torch.randn(20, 4), torch.randn(20, 1)
opt = torch.optim.LBFGS(head.parameters(), max_iter=6)
features = body(x).tanh()
def closure():
    opt.zero_grad()
    loss = nn.functional.mse_loss(head(features.detach()), y)
    loss.backward()
    return loss
for _ in range(3):
    opt.step(closure)
""",
    "another optimizer calls its closure once": """
import torch
from torch import nn
torch.manual_seed(0)
net, x = nn.Linear(4, 1), torch.randn(20, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    loss = (net(x) - 1).pow(2).mean()
    def closure():
        opt.zero_grad()
        loss.backward()
        return loss
    opt.step(closure)
""",
    "the parts of a closure's loss are walked one by one": """
import torch
from torch import nn
torch.manual_seed(0)
net, x = nn.Linear(4, 3), torch.randn(20, 4)
opt = torch.optim.LBFGS(net.parameters(), max_iter=4)
def closure():
    opt.zero_grad()
    parts = (net(x) - 1).pow(2).mean(0)
    for part in parts:
        part.backward(retain_graph=True)
    return parts.sum()
for _ in range(3):
    opt.step(closure)
""",
    "the parts of a closure's loss, and one evaluation in each step": """
import torch
from torch import nn
torch.manual_seed(0)
net, x = nn.Linear(4, 3), torch.randn(20, 4)
opt = torch.optim.LBFGS(net.parameters(), max_iter=1)
def closure():
    opt.zero_grad()
    parts = (net(x) - 1).pow(2).mean(0)
    for part in parts:
        part.backward(retain_graph=True)
    return parts.sum()
for _ in range(3):
    opt.step(closure)
""",
    "a bound on the gradients, walked several times before the first step": """
import torch
from torch import nn
torch.manual_seed(0)
net, x = nn.Linear(4, 1), torch.randn(20, 4)
opt = torch.optim.LBFGS(net.parameters(), max_iter=4)
first = (net(x) - 1).pow(2).mean()
def walk(value):
    opt.zero_grad()
    value.backward(retain_graph=True)
    return net.weight.grad.norm().item()
print([walk(first) for _ in range(3)])
def closure():
    opt.zero_grad()
    loss = (net(x) - 1).pow(2).mean()
    loss.backward()
    return loss
for _ in range(3):
    opt.step(closure)
""",
    "a long run over a table that was computed once": """
import torch
from torch import nn

torch.manual_seed(0)
left, right = nn.Linear(4, 3), nn.Linear(5, 3)
optimizer = torch.optim.SGD([*left.parameters(), *right.parameters()], lr=0.01)
codes = torch.randn(6, 5)
table = right(codes)  # <- BP310
for step in range(260):
    labels = torch.randint(0, 6, (8,))
    scores = left(torch.randn(8, 4)) @ table.T
    loss = nn.functional.cross_entropy(scores, labels)
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
""",
}
