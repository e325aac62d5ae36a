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


PROGRAMS = {
    "a helper undoes what the program switched on": _helped(before="model.eval()  # <- BP611", once="net.train()"),
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
        self.net.eval()  # <- BP611
        return self.net(torch.randn(8, 6)).mean().item()

    def fit(self):
        self.net.train()
        for epoch in range(3):
            for _ in range(2):
                self.optimizer.zero_grad()
                loss = self.net(torch.randn(8, 6)).pow(2).mean()
                loss.backward()
                self.optimizer.step()
            print(epoch, self.validate())

Trainer().fit()
""",
}
