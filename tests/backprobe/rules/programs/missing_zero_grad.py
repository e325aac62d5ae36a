"""BP210 missing-zero-grad."""

AVERAGED = """
import copy
import torch
from torch import nn

online, head = nn.Linear(8, 6), nn.Linear(6, 6)
target = copy.deepcopy(online)
optimizer = torch.optim.Adam([*online.parameters(), *head.parameters()], lr=1e-3)
for _ in range(4):
    x = torch.randn(16, 8)
    loss = (head(online(x)) - target(x)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward(){mark}
    optimizer.step()
    with torch.no_grad():
        for o, t in zip(online.parameters(), target.parameters()):
            {update}
"""

CLOSURE = """
import torch
from torch import nn

curve = nn.Linear(3, 1)
solver = torch.optim.LBFGS(curve.parameters(), lr=0.1, max_iter=3)
x = torch.randn(16, 3)

def closure():
    {clear}
    loss = curve(x).pow(2).mean()
    loss.backward(){mark}
    return loss

for _ in range(3):
    solver.step(closure)
"""

ANOTHER = """
import copy
import torch
from torch import nn

online = nn.Linear(4, 2)
target = copy.deepcopy(online)
optimizer = torch.optim.SGD(online.parameters(), lr=0.01)

def learn(x):
    loss = (online(x) - target(x + 1).detach()).pow(2).mean()
    {clear}
    loss.backward(){mark}
    optimizer.step()

for x in torch.randn(4, 8, 4):
    learn(x)
"""

SEVERAL = """
import torch
from torch import nn

model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", enabled=False)

def walk(x):
    model(x).pow(2).mean().backward()

for x in torch.randn(4, 8, 3):
    walk(x)
    walk(x + 1)
    scaler.step(optimizer)  # <- BP210
"""

SHAPES = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
"""

PROGRAMS = {
    "a closure that never clears is told where it walks": CLOSURE.format(clear="pass", mark="  # <- BP210"),
    "a closure that clears": CLOSURE.format(clear="solver.zero_grad()", mark=""),
    "several calls outside of the step are told at the step, also of a scaler": SEVERAL,
    "the clear of a module that never has a gradient stands in its place": ANOTHER.format(
        clear="target.zero_grad()  # <- BP210", mark=""
    ),
    "a clear that is named and not called": ANOTHER.format(clear="optimizer.zero_grad  # <- BP210", mark=""),
    "the clear of the module by itself": ANOTHER.format(clear="online.zero_grad()", mark=""),
    "a call of another name clears nothing": ANOTHER.format(clear="target.train()", mark="  # <- BP210"),
    "an average of other weights is no training": AVERAGED.format(update="t.lerp_(o, 0.01)", mark=""),
    "its own gradient is used, and never cleared": AVERAGED.format(update="t -= 0.01 * t.grad", mark="  # <- BP210"),
    "before the batches, in a trainer": SHAPES
    + """
class Trainer:
    def __init__(self, net):
        self.net, self.opt = net, torch.optim.SGD(net.parameters(), lr=1e-3)

    def epoch(self, batches):
        self.opt.zero_grad()  # <- BP210
        for x, y in batches:
            self.step(x, y)

    def step(self, x, y):
        loss = F.mse_loss(self.net(x), y)
        loss.backward()
        self.opt.step()

trainer = Trainer(nn.Linear(4, 1))
batches = [(torch.randn(8, 4), torch.randn(8, 1)) for _ in range(4)]
for _ in range(3):
    trainer.epoch(batches)
""",
    "the module's own, once per pass over the graphs": SHAPES
    + """
lin1, lin2 = nn.Linear(3, 8), nn.Linear(8, 2)
gnn = nn.ModuleList([lin1, lin2])
opt = torch.optim.Adam(gnn.parameters(), lr=1e-3)
graphs = [(torch.rand(5, 5), torch.randn(5, 3), torch.randint(0, 2, (5,))) for _ in range(4)]
for epoch in range(3):
    gnn.zero_grad()  # <- BP210
    for adj, feats, label in graphs:
        h = torch.relu(adj @ lin1(feats))
        loss = F.cross_entropy(adj @ lin2(h), label)
        loss.backward()
        opt.step()
""",
    "one clear per epoch, one step per epoch": SHAPES
    + """
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(4):
    opt.zero_grad()
    for _ in range(3):
        (net(torch.randn(8, 4)).pow(2).mean() / 3).backward()
    opt.step()
""",
    "one of two leaves is cleared by hand": """
import torch
from torch import nn
torch.manual_seed(0)
x=torch.randn(32,4); y=x.sum(1,keepdim=True)

w=torch.zeros(4,1,requires_grad=True); b=torch.zeros(1,requires_grad=True)
for _ in range(5):
    loss=(x@w+b-y).pow(2).mean(); loss.backward()
    with torch.no_grad():
        w-=.1*w.grad; b-=.1*b.grad
        w.grad.zero_() # <- BP210
""",
    "the optimizer holds more than the module that is cleared": """
import torch
from torch import nn
net, scale = nn.Linear(4, 2), nn.Parameter(torch.zeros(2))
opt = torch.optim.SGD([*net.parameters(), scale], lr=0.05)
for _ in range(4):
    error = (net(torch.randn(8, 4)) - 1).pow(2).mean(0)
    loss = (error * torch.exp(-scale) + scale).sum()
    net.zero_grad()  # <- BP210
    loss.backward()
    opt.step()
""",
    "right: both are cleared, each by itself": """
import torch
from torch import nn
net, scale = nn.Linear(4, 2), nn.Parameter(torch.zeros(2))
opt = torch.optim.SGD([*net.parameters(), scale], lr=0.05)
for _ in range(4):
    error = (net(torch.randn(8, 4)) - 1).pow(2).mean(0)
    loss = (error * torch.exp(-scale) + scale).sum()
    net.zero_grad()
    scale.grad = None
    loss.backward()
    opt.step()
""",
    "right: a weight that is moved along its gradient for a second pass and put back": """
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(1)
table, head = nn.Embedding(30, 6), nn.Linear(6, 2)
opt = torch.optim.Adam([*table.parameters(), *head.parameters()], 1e-2)
kept = {}

def attack(size):
    for w in table.parameters():
        kept[w] = w.data.clone()
        w.data.add_(size * w.grad / (w.grad.norm() + 1e-12))

def restore():
    for w in table.parameters():
        w.data.copy_(kept[w])

for _ in range(5):
    ids = torch.randint(0, 30, (16, 4))
    opt.zero_grad()
    F.cross_entropy(head(table(ids).mean(1)), ids[:, 0] % 2).backward()
    attack(0.5)
    F.cross_entropy(head(table(ids).mean(1)), ids[:, 0] % 2).backward()
    restore()
    opt.step()
""",
    "right: the way out is added and taken away again": """
import torch
from torch import nn

torch.manual_seed(1)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), 1e-2)
for _ in range(5):
    x = torch.randn(8, 4)
    opt.zero_grad()
    net(x).square().mean().backward()
    away = [0.05 * p.grad / p.grad.norm() for p in net.parameters()]
    with torch.no_grad():
        for p, e in zip(net.parameters(), away):
            p.add_(e)
    net(x).square().mean().backward()
    with torch.no_grad():
        for p, e in zip(net.parameters(), away):
            p.sub_(e)
    opt.step()
""",
    "moved and put back, and never cleared": """
import torch
from torch import nn

torch.manual_seed(1)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), 1e-2)
for _ in range(5):
    x = torch.randn(8, 4)
    net(x).square().mean().backward()
    away = [0.05 * p.grad / p.grad.norm() for p in net.parameters()]
    with torch.no_grad():
        for p, e in zip(net.parameters(), away):
            p.add_(e)
    net(x).square().mean().backward()
    with torch.no_grad():
        for p, e in zip(net.parameters(), away):
            p.sub_(e)
    opt.step()  # <- BP210
""",
    "steps by hand of two kinds, and never cleared": """
import torch

torch.manual_seed(1)
w = torch.randn(5, requires_grad=True)
for step in range(6):
    (w - 1).square().sum().backward()  # <- BP210
    with torch.no_grad():
        if step < 3:
            w -= 0.05 * w.grad
        else:
            w -= 0.01 * w.grad
""",
    "the other loss fills it too, and nobody clears": """
import torch
from torch import nn

torch.manual_seed(0)
maker, judge = nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1))
maker_opt = torch.optim.SGD(maker.parameters(), lr=0.01)
judge_opt = torch.optim.SGD(judge.parameters(), lr=0.01)


def step_of_maker():
    fake = maker(torch.randn(8, 2))
    loss = (judge(fake) - 1).pow(2).mean()
    maker_opt.zero_grad()
    loss.backward()
    maker_opt.step()
    return fake.detach()


def step_of_judge(fake):
    loss = judge(fake).pow(2).mean() + (judge(torch.randn(8, 3)) - 1).pow(2).mean()
    assert judge.training
    loss.backward()  # <- BP210
    judge_opt.step()


for _ in range(4):
    step_of_judge(step_of_maker())
""",
    "the other loss fills it too, and it is cleared": """
import torch
from torch import nn

torch.manual_seed(0)
maker, judge = nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1))
maker_opt = torch.optim.SGD(maker.parameters(), lr=0.01)
judge_opt = torch.optim.SGD(judge.parameters(), lr=0.01)


def step_of_maker():
    fake = maker(torch.randn(8, 2))
    loss = (judge(fake) - 1).pow(2).mean()
    maker_opt.zero_grad()
    loss.backward()
    maker_opt.step()
    return fake.detach()


def step_of_judge(fake):
    loss = judge(fake).pow(2).mean() + (judge(torch.randn(8, 3)) - 1).pow(2).mean()
    judge_opt.zero_grad()
    loss.backward()
    judge_opt.step()


for _ in range(4):
    step_of_judge(step_of_maker())
""",
}
