"""BP702 parameters-replaced-after-optimizer."""

NET = "import copy\nimport torch\nfrom torch import nn\nmodel = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 3))\n"

LOOP = """
for x in torch.randn(3, 8, 4):
    model.zero_grad()
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
"""

GROWN = """
import torch
from torch import nn

class Learner:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def grow(self):
        old = self.net[-1]
        self.net[-1] = nn.Linear(8, 4){mark}
        with torch.no_grad():
            self.net[-1].weight[:2] = old.weight
        {again}

    def fit(self):
        for x in torch.randn(3, 8, 4):
            self.optimizer.zero_grad()
            self.net(x).pow(2).mean().backward()
            self.optimizer.step()

learner = Learner()
learner.fit()
learner.grow()
learner.fit()
"""

PROGRAMS = {
    "a deep copy is trained in its place": NET
    + "optimizer = torch.optim.Adam(model.parameters(), lr=0.1)  # <- BP702\nmodel = copy.deepcopy(model)\n"
    + LOOP,
    "a layer is built anew by a method": """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 3)

    def reset(self, classes):
        self.head = nn.Linear(8, classes)

    def forward(self, x):
        return self.head(self.body(x))

class Trainer:
    def __init__(self, net):
        self.net = net
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def fit(self):
        self.net.reset(2)  # <- BP702
        for x in torch.randn(3, 8, 4):
            self.optimizer.zero_grad()
            self.net(x).pow(2).mean().backward()
            self.optimizer.step()

Trainer(Net()).fit()
""",
    "a class that calls itself otherwise": """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(me):
        super().__init__()
        me.body, me.head = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(me, x):
        return me.head(me.body(x))

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)  # <- BP702
net.head = nn.Linear(8, 2)
for x in torch.randn(3, 8, 4):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
""",
    "one step is no pattern": NET
    + "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nmodel[1] = nn.Linear(8, 2)\n"
    + LOOP.replace("(3, 8, 4)", "(1, 8, 4)"),
    "the new one is written by hand": NET
    + "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nmodel[1] = nn.Linear(8, 2)\n"
    + LOOP
    + "    with torch.no_grad():\n        for p in model[1].parameters():\n            p -= 0.1 * p.grad\n",
    "the old one gets gradients too": NET
    + """
first = model
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # <- BP701
model = copy.deepcopy(model)
for x in torch.randn(3, 8, 4):
    model.zero_grad()
    optimizer.zero_grad()
    (model(x) - first(x + 1)).pow(2).mean().backward()
    optimizer.step()
""",
    "the other model came first": NET
    + """
first = model
model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 3))
optimizer = torch.optim.SGD(first.parameters(), lr=0.1)  # <- BP701
for x in torch.randn(3, 8, 4):
    model.zero_grad()
    first.zero_grad()
    with torch.no_grad():
        target = first(x)
    model(x).pow(2).mean().backward()
    (first(x) * 0).sum().backward()
    optimizer.step()
""",
    "the optimizer of the old one does not step": NET
    + """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
other = nn.Linear(3, 3)
second = torch.optim.SGD(other.parameters(), lr=0.1)
model[1] = nn.Linear(8, 3)
for x in torch.randn(3, 8, 4):
    optimizer.zero_grad()
    second.zero_grad()
    with torch.no_grad():
        code = model(x)
    other(code).pow(2).mean().backward()
    second.step()
""",
    "a new one that was filled by hand before it ran": NET
    + """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # <- BP702
model[1] = nn.Linear(8, 2)
with torch.no_grad():
    model[1].weight.fill_(0.1)
for x in torch.randn(3, 8, 4):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
""",
    "a new one that is stepped by hand": NET
    + """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model[1] = nn.Linear(8, 2)
for x in torch.randn(3, 8, 4):
    model.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
    with torch.no_grad():
        for p in model[1].parameters():
            p -= 0.1 * p.grad
""",
    "replaced by a function before the model ever ran": """
import torch
from torch import nn


def build():
    made = nn.Sequential()
    made.add_module("body", nn.Linear(4, 8))
    made.add_module("head", nn.Linear(8, 5))
    return made, torch.optim.SGD(made.parameters(), lr=0.1)  # <- BP702


def retarget(made):
    made.head = nn.Linear(8, 2)


model, optimizer = build()
retarget(model)
for x in torch.randn(3, 8, 4):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
""",
    "a second optimizer holds the new one": NET
    + """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model[1] = nn.Linear(8, 2)
second = torch.optim.SGD(model[1].parameters(), lr=0.1)
for x in torch.randn(3, 8, 4):
    model.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
    second.step()
""",
    "an element of the last index, in a method": GROWN.format(mark="  # <- BP702", again="pass"),
    "an element of the last index, and the optimizer again": GROWN.format(
        mark="", again="self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)"
    ),
    "a leaf that is made anew behind each step": """
import torch
from torch import nn
torch.manual_seed(0)
x=torch.randn(32,4); y=x.sum(1,keepdim=True)

w=torch.zeros(4,1,requires_grad=True)
opt=torch.optim.Adam([w],lr=.1)
for _ in range(5):
    loss=(x@w-y).pow(2).mean(); opt.zero_grad(); loss.backward(); opt.step()
    w=w.detach().clamp(-1,1).requires_grad_() # <- BP702
""",
    "the same of an attribute": """
import torch
from torch import nn
torch.manual_seed(0)
x=torch.randn(32,4); y=x.sum(1,keepdim=True)

class A:
    def __init__(s):
        s.w=torch.zeros(4,1,requires_grad=True); s.opt=torch.optim.Adam([s.w],lr=.1)
    def step(s):
        loss=(x@s.w-y).pow(2).mean(); s.opt.zero_grad(); loss.backward(); s.opt.step()
        s.w=torch.nn.functional.normalize(s.w.detach(),dim=0).requires_grad_(True) # <- BP702
a=A()
for _ in range(5): a.step()
""",
    "a new leaf and a new optimizer for each input": """
import torch
from torch import nn
torch.manual_seed(0)
x=torch.randn(32,4); y=x.sum(1,keepdim=True)

net=nn.Linear(4,1).requires_grad_(False)
for k in range(3):
    d=torch.zeros(4,requires_grad=True)
    opt=torch.optim.Adam([d],lr=.1)
    for _ in range(3):
        loss=net(x+d).pow(2).mean(); opt.zero_grad(); loss.backward(); opt.step()
    d=d.detach()
""",
    "a head replaced by a callback, after an epoch": """
import torch
from torch import nn


class Growing(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 6)
        self.head = nn.Linear(6, 2)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


class Trainer:
    def __init__(self, net):
        self.net = net
        self.opt = torch.optim.SGD(net.parameters(), lr=0.1)

    def on_epoch_end(self, epoch):
        if epoch == 0:
            self.net.head = nn.Linear(6, 3)  # <- BP702

    def fit(self):
        for epoch in range(2):
            for _ in range(3):
                x = torch.randn(8, 4)
                y = torch.randint(0, 2, (8,))
                loss = nn.functional.cross_entropy(self.net(x), y)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            self.on_epoch_end(epoch)


torch.manual_seed(0)
Trainer(Growing()).fit()
""",
    "an embedding resized between two phases": """
import torch
from torch import nn


def resize(model, size):
    old = model["embed"].weight.data
    new = nn.Embedding(size, old.shape[1])
    new.weight.data[: len(old)] = old
    model["embed"] = new  # <- BP702


def epoch(model, optimizer, high):
    for _ in range(3):
        ids = torch.randint(0, high, (5, 7))
        loss = nn.functional.cross_entropy(model["out"](model["embed"](ids).mean(1)), ids[:, 0] % 3)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


torch.manual_seed(0)
model = nn.ModuleDict({"embed": nn.Embedding(6, 4), "out": nn.Linear(4, 3)})
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
print(epoch(model, optimizer, 6))
resize(model, 9)
print(epoch(model, optimizer, 9))
""",
    "a second head for a second task": """
import torch
from torch import nn

torch.manual_seed(0)
trunk = nn.Sequential(nn.Linear(5, 8), nn.Tanh())
net = nn.Sequential(trunk, nn.Linear(8, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)


def run(classes, steps=4):
    losses = []
    for _ in range(steps):
        x, y = torch.randn(6, 5), torch.randint(0, classes, (6,))
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


print(run(2))
net[1] = nn.Linear(8, 4)  # <- BP702
print(run(4))
""",
    "a new optimizer for each phase": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 2))


def run(opt, classes, steps=4):
    for _ in range(steps):
        x, y = torch.randn(6, 5), torch.randint(0, classes, (6,))
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
    return loss.item()


print(run(torch.optim.SGD(net.parameters(), lr=0.1), 2))
net[2] = nn.Linear(8, 4)
print(run(torch.optim.SGD(net.parameters(), lr=0.1), 4))
""",
    "a loop over the parameters gives its name to one after another": """
import torch
from torch import nn


def freeze_but(model, part):
    for key, p in model.named_parameters():
        p.requires_grad = key.startswith(part)


class Prompted(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(4, 4)
        self.extra = nn.ModuleList()

    def add(self):
        self.extra.append(nn.Linear(4, 4))

    def forward(self, x):
        h = self.base(x)
        for layer in self.extra:
            h = h + layer(h)
        return h


torch.manual_seed(0)
model = Prompted()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)  # <- BP701
model.add()
freeze_but(model, "extra")
model.base.bias.requires_grad_(True)
for _ in range(4):
    loss = model(torch.randn(6, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "replaced by a method of the model, between two phases of a function": """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 6), nn.Linear(6, 2)

    def widen(self, classes):
        self.head = nn.Linear(6, classes)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


def main():
    net = Net()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for phase in range(2):
        if phase:
            net.widen(4)  # <- BP702
        for x in torch.randn(3, 8, 4):
            opt.zero_grad()
            net(x).pow(2).mean().backward()
            opt.step()
    return net, opt


net, opt = main()
""",
    "replaced between two phases, behind a call of the trainer": """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 6), nn.Linear(6, 2)

    def widen(self, classes):
        self.head = nn.Linear(6, classes)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


class Session:
    def __init__(self, net):
        self.net, self.opt = net, torch.optim.SGD(net.parameters(), lr=0.1)

    def more(self, classes):
        self.prepare(classes)
        for x in torch.randn(3, 8, 4):
            self.opt.zero_grad()
            self.net(x).pow(2).mean().backward()
            self.opt.step()

    def prepare(self, classes):
        adapt(self.net, classes)  # <- BP702


def adapt(net, classes):
    if net.head.out_features != classes:
        net.widen(classes)


session = Session(Net())
session.more(2)
session.more(5)
""",
    "a trainer is built before the head is changed": """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 6), nn.Linear(6, 2)

    def widen(self, classes):
        self.head = nn.Linear(6, classes)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


class Fit:
    def __init__(self, model):
        self.model = model
        self.optim = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def __call__(self):
        for x in torch.randn(3, 8, 4):
            self.optim.zero_grad()
            self.model(x).pow(2).mean().backward()
            self.optim.step()


net = Net()
fit = Fit(net)
net.head = nn.Linear(6, 3)  # <- BP702
fit()
""",
    "a trainer lists the parameters under a name before the head is changed": """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 6), nn.Linear(6, 2)

    def widen(self, classes):
        self.head = nn.Linear(6, classes)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


class Fit:
    def __init__(self, model):
        self.model = model
        learned = [p for p in self.model.parameters() if p.requires_grad]
        self.optim = torch.optim.SGD(learned, lr=0.1)

    def __call__(self):
        for x in torch.randn(3, 8, 4):
            self.optim.zero_grad()
            self.model(x).pow(2).mean().backward()
            self.optim.step()


net = Net()
fit = Fit(net)
net.head = nn.Linear(6, 3)  # <- BP702
fit()
""",
    "a trainer lists the parameters under a name after the head was changed": """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 6), nn.Linear(6, 2)

    def widen(self, classes):
        self.head = nn.Linear(6, classes)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


class Fit:
    def __init__(self, model):
        self.model = model
        learned = [p for p in self.model.parameters() if p.requires_grad]
        self.optim = torch.optim.SGD(learned, lr=0.1)

    def __call__(self):
        for x in torch.randn(3, 8, 4):
            self.optim.zero_grad()
            self.model(x).pow(2).mean().backward()
            self.optim.step()


net = Net()
net.head = nn.Linear(6, 3)
fit = Fit(net)
fit()
""",
    "a parameter that could be written in place": """
import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.scale = nn.Linear(4, 2), nn.Parameter(torch.ones(2))

    def start_from(self, x):
        self.scale = nn.Parameter(1 / self.lin(x).std(0).detach())  # <- BP702

    def forward(self, x):
        return self.lin(x) * self.scale


net = Scaled()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net.start_from(torch.randn(20, 4))
for x in torch.randn(3, 8, 4):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
""",
    "that parameter is written in place": """
import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.scale = nn.Linear(4, 2), nn.Parameter(torch.ones(2))

    @torch.no_grad()
    def start_from(self, x):
        self.scale.copy_(1 / self.lin(x).std(0))

    def forward(self, x):
        return self.lin(x) * self.scale


net = Scaled()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net.start_from(torch.randn(20, 4))
for x in torch.randn(3, 8, 4):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
""",
    "the optimizer is built again behind the method": """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 6), nn.Linear(6, 2)

    def widen(self, classes):
        self.head = nn.Linear(6, classes)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


def main():
    net = Net()
    for phase in range(2):
        if phase:
            net.widen(4)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for x in torch.randn(3, 8, 4):
            opt.zero_grad()
            net(x).pow(2).mean().backward()
            opt.step()


main()
""",
}

_RESUMED = """
import torch
from torch import nn


class Run:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=0.1)

    def resume(self, state):
        {load}

    def fit(self):
        for x in torch.randn(3, 8, 4):
            self.optimizer.zero_grad()
            self.net(x).pow(2).mean().backward()
            self.optimizer.step()


first, second = Run(), Run()
first.fit()
second.resume(first.net.state_dict())
second.fit()
"""

_RESTORED = """
import copy
import torch
from torch import nn


class Best:
    def after(self, trainer, epoch):
        if epoch == 0:
            self.kept = copy.deepcopy(trainer.net)
        elif epoch == 2:
            {restore}
            for group in trainer.optimizer.param_groups:
                group["lr"] *= 0.5


class Trainer:
    def __init__(self):
        self.net, self.hooks = nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 2)), [Best()]
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=0.1)

    def fit(self):
        for epoch in range(6):
            for x in torch.randn(2, 8, 4):
                self.optimizer.zero_grad()
                self.net(x).pow(2).mean().backward()
                self.optimizer.step()
            for hook in self.hooks:
                hook.after(self, epoch)


Trainer().fit()
"""

PROGRAMS |= {
    "a state is assigned behind the optimizer": _RESUMED.format(
        load="self.net.load_state_dict({k: v.clone() for k, v in state.items()}, assign=True)  # <- BP702"
    ),
    "a state is copied behind the optimizer": _RESUMED.format(load="self.net.load_state_dict(state)"),
    "a state is assigned, and the optimizer is built again": _RESUMED.format(
        load="self.net.load_state_dict({k: v.clone() for k, v in state.items()}, assign=True)\n"
        "        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=0.1)"
    ),
    "one layer's state is assigned behind the optimizer": NET
    + "optimizer = torch.optim.Adam(model.parameters(), lr=0.1)\nsaved = nn.Linear(8, 3).state_dict()\n"
    + "model[1].load_state_dict(saved, assign=True)  # <- BP702\n"
    + LOOP,
    "a copy is restored where the optimizer is at hand": _RESTORED.format(
        restore="trainer.net = copy.deepcopy(self.kept)  # <- BP702"
    ),
    "the values of a copy are restored": _RESTORED.format(
        restore="trainer.net.load_state_dict(self.kept.state_dict())"
    ),
}

PROGRAMS |= {
    "a copy is trained beside the model, and the optimizer holds the model": """
import copy
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return self.fc(x)


teacher = Net()
optimizer = torch.optim.Adam(teacher.parameters(), lr=0.1)  # <- BP701
student = copy.deepcopy(teacher)
for x in torch.randn(3, 8, 4):
    student.zero_grad()
    (student(x) - x[:, :2]).pow(2).mean().backward()
    optimizer.step()
""",
}

_LAYERS = "nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 2))"


def _named_first(restore: str) -> str:
    """The model has a name before the trainer is given it."""
    program = _RESTORED.format(restore=restore).replace(
        f"self.net, self.hooks = {_LAYERS}", "self.net, self.hooks = net"
    )
    program = program.replace("def __init__(self):", "def __init__(self, net):")
    return program.replace("Trainer().fit()", f"model = {_LAYERS}\nTrainer(model).fit()")


PROGRAMS |= {
    "a copy is restored of a model that had a name before": _named_first(
        "trainer.net = copy.deepcopy(self.kept)  # <- BP702"
    ),
    "the values of a copy are restored to a model that had a name before": _named_first(
        "trainer.net.load_state_dict(self.kept.state_dict())"
    ),
    "a copy is trained in another attribute than that which the model was put into": """
import copy
import torch
from torch import nn


class Trainer:
    def __init__(self, teacher):
        self.teacher = teacher
        self.optimizer = torch.optim.Adam(teacher.parameters(), lr=0.1)  # <- BP701

    def step(self, x):
        self.student.zero_grad()
        self.student(x).pow(2).mean().backward()
        self.optimizer.step()


net = nn.Linear(4, 2)
trainer = Trainer(net)
trainer.student = copy.deepcopy(net)
for x in torch.randn(3, 8, 4):
    trainer.step(x)
""",
}
