"""BP611 training-in-eval-mode."""

_HEAD = """
import torch
from torch import nn

net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
"""

_HELPED = (
    _HEAD
    + """
def score(model, x):
    {before}
    with torch.no_grad():
        value = model(x).mean().item()
    {behind}
    return value

{once}
for epoch in range(3):
    {each}
    for _ in range(2):
        optimizer.zero_grad()
        loss = net(torch.randn(8, 6)).pow(2).mean(){mark}
        loss.backward()
        optimizer.step()
    print(score(net, torch.randn(8, 6)))
"""
)


def _helped(*, before: str, behind: str = "pass", once: str = "pass", each: str = "pass", mark: str = "") -> str:
    return _HELPED.format(before=before, behind=behind, once=once, each=each, mark=mark)


_FIT = """
import torch
from torch import nn


class Fit:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.3), nn.Linear(8, 2))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    @torch.no_grad()
    def evaluate(self, x):
        self.net.eval()
        return self.net(x).pow(2).mean().item()

    def epoch(self, batches):
        for x in batches:
            self.optimizer.zero_grad()
            self.net(x).pow(2).mean().backward()
            self.optimizer.step()

    def run(self, data):
        {once}
        for batches in data:
            {each}
            self.epoch(batches)
            print(self.evaluate(torch.randn(8, 6)))


Fit().run(torch.randn(3, 2, 8, 6))
"""


def _fit(*, once: str = "pass", each: str = "pass") -> str:
    return _FIT.format(once=once, each=each)


PROGRAMS = {
    "a helper undoes what the program switched on": _helped(before="model.eval()", once="net.train()  # <- BP611"),
    "a helper evaluates, and nobody ever trains": _helped(before="model.eval()", mark="  # <- BP611"),
    "a helper evaluates, and another is what is switched on": _helped(
        before="model.eval()", once="nn.Linear(2, 2).train()", mark="  # <- BP611"
    ),
    "a helper evaluates, and each epoch begins anew": _helped(before="model.eval()", each="net.train()"),
    "a helper switches back": _helped(before="model.eval()", behind="model.train()"),
    "a helper restores what was": _helped(before="was = model.training; model.eval()", behind="model.train(was)"),
    "a method that only switches is called in a helper": """
import torch
from torch import nn

class Matcher:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.3), nn.Linear(8, 2))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def train_start(self):
        self.net.train()

    def val_start(self):
        self.net.eval()

    def update(self, x):
        self.optimizer.zero_grad()
        loss = self.net(x).pow(2).mean()
        loss.backward()
        self.optimizer.step()

def validate(matcher):
    matcher.val_start()  # <- BP611
    with torch.no_grad():
        print(matcher.net(torch.randn(8, 6)).mean())

matcher = Matcher()
matcher.train_start()
for x in torch.randn(3, 2, 8, 6):
    for rows in x:
        matcher.update(rows)
    validate(matcher)
""",
    "eval() again behind the training": _HEAD
    + """
net.eval()
for _ in range(3):
    optimizer.zero_grad()
    out = net(torch.randn(8, 6))  # <- BP611
    out.pow(2).mean().backward()
    optimizer.step()
net.eval()
with torch.no_grad():
    net(torch.randn(8, 6))
""",
    "eval() once, before all training": _HEAD
    + """
net.eval()
for _ in range(3):
    optimizer.zero_grad()
    out = net(torch.randn(8, 6))  # <- BP611
    out.pow(2).mean().backward()
    optimizer.step()
""",
    "one step is no pattern": _HEAD
    + """
net.eval()
net(torch.randn(8, 6)).pow(2).mean().backward()
optimizer.step()
""",
    "no module in it acts by its mode": """
import torch
from torch import nn

net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net.eval()
for _ in range(3):
    optimizer.zero_grad()
    net(torch.randn(8, 6)).pow(2).mean().backward()
    optimizer.step()
""",
    "a small adapter is trained inside a model in eval mode": """
import torch
from torch import nn

base = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.3), nn.Linear(8, 8), nn.Linear(8, 2)).requires_grad_(False)
base.eval()
base[3].bias.requires_grad_(True)
optimizer = torch.optim.SGD([base[3].bias], lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    base(torch.randn(8, 6)).pow(2).mean().backward()
    optimizer.step()
""",
    "gradients of the input, without a step": """
import torch
from torch import nn

net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 2))
net.eval()
for _ in range(3):
    x = torch.randn(8, 6, requires_grad=True)
    net(x).pow(2).mean().backward()
    print(x.grad.norm())
""",
    "a trainer's method validates": """
import torch
from torch import nn

class Trainer:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.3), nn.Linear(8, 2))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    @torch.no_grad()
    def validate(self):
        self.net.eval()
        return self.net(torch.randn(8, 6)).mean().item()

    def fit(self):
        self.net.train()  # <- BP611
        for epoch in range(3):
            for _ in range(2):
                self.optimizer.zero_grad()
                loss = self.net(torch.randn(8, 6)).pow(2).mean()
                loss.backward()
                self.optimizer.step()
            print(epoch, self.validate())

Trainer().fit()
""",
    "methods, and train() once before the epochs": _fit(once="self.net.train()  # <- BP611"),
    "methods, and train() in each epoch": _fit(each="self.net.train()"),
    "evaluated in the middle of an epoch": _HEAD
    + """
class Fit:
    def __init__(self, net):
        self.net, self.optimizer = net, torch.optim.SGD(net.parameters(), lr=0.1)

    def evaluate(self, x):
        self.net.eval()  # <- BP611
        with torch.no_grad():
            return self.net(x).pow(2).mean().item()

    def run(self, batches):
        self.net.train()
        for turn, x in enumerate(batches):
            self.optimizer.zero_grad()
            self.net(x).pow(2).mean().backward()
            self.optimizer.step()
            if turn % 2:
                print(self.evaluate(torch.randn(8, 6)))


Fit(net).run(torch.randn(8, 8, 6))
""",
    "a function of one global module": _HEAD
    + """
def test():
    net.eval()  # <- BP611
    with torch.no_grad():
        print(net(torch.randn(8, 6)).mean().item())


def fit():
    net.train()
    for _ in range(3):
        for x in torch.randn(2, 8, 6):
            optimizer.zero_grad()
            net(x).pow(2).mean().backward()
            optimizer.step()
        test()


fit()
""",
    "a context is to put back what it changes": _HEAD
    + """
import contextlib


@contextlib.contextmanager
def measured(module):
    module.eval()  # <- BP611
    with torch.no_grad():
        yield module


net.train()
for _ in range(3):
    for x in torch.randn(2, 8, 6):
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()
    with measured(net) as still:
        print(still(torch.randn(8, 6)).mean().item())
""",
}
