"""BP109 freeze-without-effect."""

COMPARED = """
import torch
from torch import nn
backbone, head = nn.Linear(3, 4), nn.Linear(4, 1)
for p in backbone.parameters():
    {statement}
optimizer = torch.optim.SGD([*backbone.parameters(), *head.parameters()], lr=0.1)
for x in torch.randn(3, 5, 3):
    optimizer.zero_grad()
    head(backbone(x)).pow(2).mean().backward()
    optimizer.step()
"""

HELD = """
from dataclasses import dataclass, field
import torch
from torch import nn

@dataclass
class Experiment:
    trunk: nn.Module = field(default_factory=lambda: nn.Sequential(nn.Linear(3, 4), nn.ReLU()))
    probe: nn.Module = field(default_factory=lambda: nn.Linear(4, 1))

    def run(self):
        {freeze}
        optimizer = torch.optim.SGD([*self.trunk.parameters(), *self.probe.parameters()], lr=0.1)
        for x in torch.randn(3, 5, 3):
            optimizer.zero_grad()
            self.probe(self.trunk(x)).pow(2).mean().backward()
            optimizer.step()

Experiment().run()
"""

LOOPED = """
import torch
from torch import nn

class Settings:
    pass

net = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 1))
for m in {over}:
    {freeze}
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 5, 3):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
"""

PROBED = """
import torch
from torch import nn

class Probe(nn.Module):
    def __init__(self, encoder, classes=2):
        super().__init__()
        {inside}
        self.encoder, self.top = encoder, nn.Linear(4, classes)

    def forward(self, x):
        return self.top(self.encoder(x))

def freeze(part, flag=False):
    {helper}

def fit(net, data, steps=3):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in data.split(4)[:steps]:
        opt.zero_grad()
        net(x).pow(2).mean().backward()
        opt.step()

def probe(body, data):
    {before}
    net = Probe(body)
    fit(net, data)

body = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
data = torch.randn(12, 3)
fit(body, data)
probe(body, data)
"""

STAGES = """
from collections import OrderedDict
import torch
from torch import nn

net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
{first}

class Stages:
    def __init__(self, net):
        self.net = net
        self.opt = torch.optim.Adam(net.parameters())

    def stage(self, data, flag):
        for p in self.net[0].parameters():
            {statement}
        for x in data:
            self.opt.zero_grad()
            self.net(x).pow(2).mean().backward()
            self.opt.step()

stages = Stages(net)
stages.stage(torch.randn(2, 5, 3), False)
stages.stage(torch.randn(2, 5, 3), True)
"""


def _probed(*, inside: str = "pass", helper: str = "pass", before: str = "pass") -> str:
    return PROBED.format(inside=inside, helper=helper, before=before)


HEADED = """
net = nn.Sequential(OrderedDict(body=nn.Linear(3, 4), act=nn.Tanh(), head=nn.Linear(4, 1)))"""


def _stages(statement: str, first: str = "net[0].requires_grad_(False)") -> str:
    return STAGES.format(statement=statement, first=first)


PROGRAMS = {
    "a module that a function is given": _probed(before="body.requires_grad = False  # <- BP109"),
    "a module that a constructor is given": _probed(inside="encoder.requires_grad = False  # <- BP109"),
    "a module that a helper is given": _probed(helper="part.requires_grad = False  # <- BP109", before="freeze(body)"),
    "a module that a helper is given a flag for": _probed(
        helper="part.requires_grad = flag  # <- BP109", before="freeze(body, flag=False)"
    ),
    "a module that a function is given, frozen": _probed(before="body.requires_grad_(False)"),
    "a module that a helper is given, frozen as well": _probed(
        helper="part.requires_grad = flag",
        before="""freeze(body)
    for p in body.parameters():
        p.requires_grad = False""",
    ),
    "a flag of the program's own that a helper sets": _probed(
        helper="part.requires_grad = flag",
        before="""freeze(body)
    print(body.requires_grad)""",
    ),
    "a flag of its own that is read by its name": _probed(
        helper="part.requires_grad = flag",
        before="""freeze(body)
    print(getattr(body, 'requires_grad', True))""",
    ),
    "a helper is given settings": _probed(
        helper="part.requires_grad = flag",
        before="""import argparse
    freeze(argparse.Namespace())""",
    ),
    "a part of what an object holds": _stages(
        "self.net[2].weight; self.net.head.requires_grad = flag  # <- BP109", HEADED
    ),
    "a misspelt flag that a variable gives": _stages("p.require_grad = flag  # <- BP109"),
    "a misspelt flag that a variable gives to what is trained": _stages("p.requires_grads = flag  # <- BP109", "pass"),
    "a misspelt flag that is set": _stages("if flag: p.required_grad = True  # <- BP109"),
    "a misspelt flag that is set on what is trained": _stages("p.required_grad = True", "pass"),
    "the flag that a variable gives": _stages("p.requires_grad = flag"),
    "the flag is kept for later": _stages("p.was_requires_grad = p.requires_grad"),
    "a mark of the program's own that is read": _stages("p.requires_grads = flag; print(p.requires_grads)"),
    "a mark of the program's own that is asked for": _stages(
        "p._requires_grad = flag; print(getattr(p, '_requires_grad'))"
    ),
    "a misspelt flag beside the right one": _stages("p.require_grad = flag; p.requires_grad = flag"),
    "a comparison in place of an assignment": COMPARED.format(statement="p.requires_grad == False  # <- BP109"),
    "a comparison of what was assigned": COMPARED.format(
        statement="""p.requires_grad = False
    p.requires_grad == False"""
    ),
    "a comparison that is used": COMPARED.format(statement="print(p.requires_grad == False)"),
    "a comparison with True": COMPARED.format(statement="p.requires_grad == True"),
    "a comparison of another attribute": COMPARED.format(statement="p.is_leaf == False"),
    "the module of a field": HELD.format(freeze="self.trunk.requires_grad = False  # <- BP109"),
    "the module of a field, frozen by another statement": HELD.format(
        freeze="""self.trunk.requires_grad = False
        for p in self.trunk.parameters():
            p.requires_grad = False"""
    ),
    "the module of a field, frozen": HELD.format(freeze="self.trunk.requires_grad_(False)"),
    "the modules that a loop runs over": LOOPED.format(over="net[:1]", freeze="m.requires_grad = False  # <- BP109"),
    "the modules that a loop chooses": LOOPED.format(
        over="net.modules()",
        freeze="""if isinstance(m, nn.LayerNorm):
        m.requires_grad = False  # <- BP109""",
    ),
    "frozen in another way too": LOOPED.format(
        over="net[:1]",
        freeze="""m.requires_grad = False
    m.requires_grad_(False)""",
    ),
    "a flag of the program's own": LOOPED.format(
        over="net[:1]",
        freeze="""m.requires_grad = False
    print(m.requires_grad)""",
    ),
    "parameters that a loop runs over": LOOPED.format(over="net[0].parameters()", freeze="m.requires_grad = False"),
    "a loop over settings": LOOPED.format(over="[Settings()]", freeze="m.requires_grad = False"),
    "a callback that means to unfreeze": """
import torch
from torch import nn
net = nn.ModuleDict({"trunk": nn.Linear(4, 8), "top": nn.Linear(8, 1)})
for p in net["trunk"].parameters():
    p.requires_grad = False
class Thaw:
    def __init__(self, net, at): self.net, self.at = net, at
    def __call__(self, epoch):
        if epoch == self.at:
            self.net.trunk.requires_grad = True  # <- BP109
            print("thawed")
opt, thaw = torch.optim.Adam(net.parameters()), Thaw(net, 1)
for epoch in range(3):
    thaw(epoch)
    opt.zero_grad()
    net["top"](net["trunk"](torch.randn(8, 4)).relu()).pow(2).mean().backward()
    opt.step()
""",
    "right: a callback that unfreezes by the method": """
import torch
from torch import nn
net = nn.ModuleDict({"trunk": nn.Linear(4, 8), "top": nn.Linear(8, 1)})
for p in net["trunk"].parameters():
    p.requires_grad = False
class Settings: requires_grad = False
class Thaw:
    def __init__(self, net, at): self.net, self.at, self.state = net, at, Settings()
    def __call__(self, epoch):
        if epoch == self.at:
            self.net["trunk"].requires_grad_(True)
            self.state.requires_grad = True
opt, thaw = torch.optim.Adam(net.parameters()), Thaw(net, 1)
for epoch in range(3):
    thaw(epoch)
    opt.zero_grad()
    net["top"](net["trunk"](torch.randn(8, 4)).relu()).pow(2).mean().backward()
    opt.step()
""",
    "right: the attribute beside what does unfreeze": """
import torch
from torch import nn
net = nn.ModuleDict({"trunk": nn.Linear(4, 8), "top": nn.Linear(8, 1)})
for p in net["trunk"].parameters():
    p.requires_grad = False
opt = torch.optim.Adam(net.parameters())
for epoch in range(3):
    if epoch == 1:
        net.trunk.requires_grad = True
        for p in net["trunk"].parameters():
            p.requires_grad = True
    opt.zero_grad()
    net["top"](net["trunk"](torch.randn(8, 4)).relu()).pow(2).mean().backward()
    opt.step()
""",
    "right: the trunk of another model is the frozen one": """
import torch
from torch import nn
def build(): return nn.ModuleDict({"trunk": nn.Linear(4, 8), "top": nn.Linear(8, 1)})
teacher, student = build(), build()
teacher.requires_grad_(False)
class Run:
    def __init__(self, model): self.model = model
    def begin(self):
        self.model.trunk.requires_grad = True
def out(net, x): return net["top"](net["trunk"](x).relu())
run, opt = Run(student), torch.optim.Adam(student.parameters())
run.begin()
for epoch in range(3):
    x = torch.randn(8, 4)
    opt.zero_grad()
    (out(student, x) - out(teacher, x)).pow(2).mean().backward()
    opt.step()
""",
    "heads are frozen by an iterator that is used up when they are to be thawed": """
import itertools
import torch
from torch import nn

class Learner:
    def __init__(self):
        self.q1, self.q2, self.pi = nn.Linear(3, 1), nn.Linear(3, 1), nn.Linear(2, 1)
        self.heads = itertools.chain(self.q1.parameters(), self.q2.parameters())  # <- BP109
        self.q_opt = torch.optim.SGD([*self.q1.parameters(), *self.q2.parameters()], lr=0.1)
        self.pi_opt = torch.optim.SGD(self.pi.parameters(), lr=0.1)
        self.trunk = nn.Parameter(torch.ones(2))
        self.q_opt.add_param_group({"params": [self.trunk]})

    def learn(self, x, y):
        z = torch.cat([x * self.trunk, y], 1)
        self.q_opt.zero_grad()
        ((self.q1(z) - 1).pow(2) + (self.q2(z) + 1).pow(2)).mean().backward()
        self.q_opt.step()
        for p in self.heads:
            p.requires_grad_(False)
        z = torch.cat([x, self.pi(x)], 1)
        self.pi_opt.zero_grad()
        torch.min(self.q1(z), self.q2(z)).mean().backward()
        self.pi_opt.step()
        for p in self.heads:
            p.requires_grad_(True)

learner = Learner()
for x in torch.randn(5, 8, 2):
    learner.learn(x, x.sum(1, keepdim=True))
""",
    "an optimizer has walked what is to be frozen": """
import torch
from torch import nn

body, head = nn.Linear(4, 3), nn.Linear(3, 1)
lower = body.parameters()  # <- BP109
optimizer = torch.optim.SGD([{"params": list(lower), "lr": 0.01}, {"params": head.parameters()}], lr=0.1)

def train(batches):
    for x in batches:
        optimizer.zero_grad()
        head(body(x)).pow(2).mean().backward()
        optimizer.step()

train(torch.randn(3, 8, 4))
for p in lower:
    p.requires_grad = False
train(torch.randn(3, 8, 4))
""",
    "a generator of a function, frozen for a warm-up and never thawed": """
import torch
from torch import nn

def fit(net, batches):
    early = (p for name, p in net.named_parameters() if name.startswith("0."))  # <- BP109
    for p in early:
        p.requires_grad = False
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for turn, x in enumerate(batches):
        if turn == 2:
            for p in early:
                p.requires_grad = True
            optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()

fit(nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1)), torch.randn(5, 8, 4))
""",
    "right: a list is walked as often as one likes": """
import itertools
import torch
from torch import nn

q1, q2, pi = nn.Linear(3, 1), nn.Linear(3, 1), nn.Linear(2, 1)
heads = list(itertools.chain(q1.parameters(), q2.parameters()))
q_opt, pi_opt = torch.optim.SGD(heads, lr=0.1), torch.optim.SGD(pi.parameters(), lr=0.1)
for x in torch.randn(5, 8, 2):
    z = torch.cat([x, x.sum(1, keepdim=True)], 1)
    q_opt.zero_grad()
    ((q1(z) - 1).pow(2) + (q2(z) + 1).pow(2)).mean().backward()
    q_opt.step()
    for p in heads:
        p.requires_grad_(False)
    z = torch.cat([x, pi(x)], 1)
    pi_opt.zero_grad()
    torch.min(q1(z), q2(z)).mean().backward()
    pi_opt.step()
    for p in heads:
        p.requires_grad_(True)
""",
    "right: a new iterator in each call": """
import torch
from torch import nn

def set_flag(net, flag):
    every = net.parameters()
    for p in every:
        p.requires_grad_(flag)

critic, actor = nn.Linear(3, 1), nn.Linear(2, 1)
critic_opt, actor_opt = torch.optim.SGD(critic.parameters(), lr=0.1), torch.optim.SGD(actor.parameters(), lr=0.1)
for x in torch.randn(5, 8, 2):
    critic_opt.zero_grad()
    critic(torch.cat([x, x.sum(1, keepdim=True)], 1)).pow(2).mean().backward()
    critic_opt.step()
    set_flag(critic, False)
    actor_opt.zero_grad()
    critic(torch.cat([x, actor(x)], 1)).mean().backward()
    actor_opt.step()
    set_flag(critic, True)
""",
    "right: a phase that thaws is not come to": """
import torch
from torch import nn

body, head = nn.Linear(4, 3), nn.Linear(3, 1)
lower = body.parameters()
for p in lower:
    p.requires_grad = False
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
for turn, x in enumerate(torch.randn(4, 8, 4)):
    optimizer.zero_grad()
    head(body(x)).pow(2).mean().backward()
    optimizer.step()
    if turn > 10:
        for p in lower:
            p.requires_grad = True
""",
    "right: one loop takes the first of an iterator, another one the rest": """
import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))
every = net.parameters()
for p in every:
    p.data.mul_(2.0)
    break
for p in every:
    p.requires_grad_(False)
optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1)
for x in torch.randn(3, 8, 4):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
""",
    "right: the name is given another module's, which has none": """
import torch
from torch import nn

net, shift = nn.Linear(4, 1), nn.Identity()
every = net.parameters()
for p in every:
    p.requires_grad = True
every = shift.parameters()
for p in every:
    p.requires_grad = False
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 8, 4):
    optimizer.zero_grad()
    shift(net(x)).pow(2).mean().backward()
    optimizer.step()
""",
}
