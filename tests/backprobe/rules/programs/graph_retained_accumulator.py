"""BP304 graph-retained-accumulator."""

_LOOP = """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
sums = {{}}
for _ in range(8):
    loss = model(torch.randn(8, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    {line}
"""

SHAPES = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
"""

PROGRAMS = {
    "kept in an attribute that is looked up with a default": _LOOP.format(
        line="model.total = getattr(model, 'total', 0) + loss  # <- BP304"
    ),
    "kept in a dict that is looked up with a default": _LOOP.format(
        line="sums['total'] = sums.get('total', 0) + loss  # <- BP305"
    ),
    "looked up with a default, and its number is kept": _LOOP.format(
        line="model.total = getattr(model, 'total', 0) + loss.item()"
    ),
    "looked up with a default, and kept without its history": _LOOP.format(
        line="sums['total'] = sums.get('total', 0) + loss.detach()"
    ),
    "each half of the average has a name of its own": SHAPES
    + """
class Meter:
    def __init__(self, keep=0.9):
        self.keep, self.value = keep, None

    def update(self, x):
        if self.value is None:
            self.value = x
        else:
            old = self.keep * self.value
            weight = 1 - self.keep
            new = weight * x
            self.value = old + new

net = nn.Linear(6, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
meter = Meter()
for _ in range(8):
    loss = net(torch.randn(8, 6)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    meter.update(loss)  # <- BP304
print(float(meter.value))
""",
    "the new sum has a name of its own before it is kept": _LOOP.format(
        line="""so_far = 0.9 * model.total
    more = so_far + loss.sqrt()
    model.total = more  # <- BP304"""
    ).replace("model = nn.Linear(4, 1)", "model = nn.Linear(4, 1)\nmodel.total = torch.zeros(())"),
    "each half of the average has a name of its own, without its history": _LOOP.format(
        line="""old = 0.9 * model.total
    new = 0.1 * loss.detach()
    model.total = old + new"""
    ).replace("model = nn.Linear(4, 1)", "model = nn.Linear(4, 1)\nmodel.total = torch.zeros(())"),
    "the old value has a name of its own, and is cut off there": _LOOP.format(
        line="""old = 0.9 * model.total.detach()
    new = 0.1 * loss
    model.total = old + new"""
    ).replace("model = nn.Linear(4, 1)", "model = nn.Linear(4, 1)\nmodel.total = torch.zeros(())"),
    "what is bound anew in each turn is changed once more": _LOOP.format(
        line="""model.total = loss.sqrt()
    half = 0.5 * model.total
    model.total = half + loss"""
    ),
    "the last one only": _LOOP.format(line="model.total = getattr(model, 'offset', 0) + loss"),
    "a test loss that grows with its history, in a class": SHAPES
    + """
class Meter:
    def __init__(self):
        self.total = 0.0

    def add(self, loss):
        self.total += loss

net = nn.Linear(6, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(8, 6)).pow(2).mean().backward()
    opt.step()
meter = Meter()
for _ in range(12):
    meter.add(F.mse_loss(net(torch.randn(8, 6)), torch.zeros(8, 1)))  # <- BP304
print(float(meter.total))
""",
    "the first value alone keeps its history": SHAPES
    + """
net = nn.Linear(6, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
avg = None
for _ in range(6):
    loss = net(torch.randn(8, 6)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    avg = loss if avg is None else 0.9 * avg + 0.1 * loss.detach()  # <- BP304
print(avg.detach().numpy())
""",
    "a method is called on what is taken in": SHAPES
    + """
net = nn.Linear(6, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
avg = None
for _ in range(6):
    loss = net(torch.randn(8, 6)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    avg = loss if avg is None else 0.9 * avg + 0.1 * loss.sqrt()  # <- BP304
""",
    "three meters take turns at one statement": SHAPES
    + """
class Meter:
    def __init__(self):
        self.total, self.count = 0, 0
    def update(self, value, n):
        self.total = self.total + value * n
        self.count += n
net = nn.Linear(6, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
meters = {}
for x in torch.randn(20, 8, 6):
    left, right = net(x).split(1, dim=1)
    values = {"left": left.pow(2).mean(), "right": right.abs().mean()}
    values["loss"] = values["left"] + values["right"]
    opt.zero_grad()
    values["loss"].backward()
    opt.step()
    for name, value in values.items():
        meters.setdefault(name, Meter()).update(value, 8)  # <- BP304
""",
    "an average of parameters in a dict": """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(5, 5)
opt = torch.optim.SGD(net.parameters(), 0.01)
class EMA:
    def __init__(self, model, decay=0.99):
        self.decay = decay
        self.shadow = {k: v.detach().clone() for k, v in model.named_parameters()}
    def update(self, model):
        for k, v in model.named_parameters():
            self.shadow[k] = self.decay * self.shadow[k] + (1 - self.decay) * v  # <- BP304
ema = EMA(net)
for _ in range(5):
    x = torch.randn(4, 5)
    opt.zero_grad()
    (net(x) - x).pow(2).mean().backward()
    opt.step()
    ema.update(net)
""",
    "right: an average of detached parameters in a dict": """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(5, 5)
opt = torch.optim.SGD(net.parameters(), 0.01)
class EMA:
    def __init__(self, model, decay=0.99):
        self.decay = decay
        self.shadow = {k: v.detach().clone() for k, v in model.named_parameters()}
    def update(self, model):
        for k, v in model.named_parameters():
            self.shadow[k] = self.decay * self.shadow[k] + (1 - self.decay) * v.detach()
ema = EMA(net)
for _ in range(5):
    x = torch.randn(4, 5)
    opt.zero_grad()
    (net(x) - x).pow(2).mean().backward()
    opt.step()
    ema.update(net)
""",
    "a callback hands a loss on to its meter": """
import torch
from torch import nn

torch.manual_seed(0)


class Sum:
    def __init__(self):
        self.total, self.n = 0.0, 0

    def add(self, amount, times=1):
        self.total = self.total + amount * times
        self.n += times


class Watch:
    def __init__(self):
        self.sums = {"loss": Sum()}

    def on_batch_end(self, run, outcome):
        self.sums["loss"].add(outcome, times=2)


net = nn.Linear(3, 2)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
watch = Watch()


def run(batches):
    for x in batches:
        outcome = net(x).square().mean()
        opt.zero_grad()
        outcome.backward()
        opt.step()
        watch.on_batch_end(run, outcome)  # <- BP304


run(torch.randn(4, 5, 3))
print(float(watch.sums["loss"].total))
""",
    "numbers are handed in": """
import torch
from torch import nn


class Smooth:
    def __init__(self):
        self.value = 0.0

    def update(self, x):
        self.value = 0.9 * self.value + 0.1 * x


torch.manual_seed(0)
net = nn.Linear(3, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
smooth = Smooth()
for x in torch.randn(4, 5, 3):
    loss = net(x).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    smooth.update(loss.item())
print(smooth.value)
""",
    "a method that takes in what its one caller hands in": """
import torch
from torch import nn


class Trainer:
    def __init__(self):
        self.net = nn.Linear(4, 1)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.mean = torch.zeros(())

    def track(self, value):
        self.mean = 0.9 * self.mean + 0.1 * value

    def fit(self, batches):
        for x in batches:
            loss = self.net(x).pow(2).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.track(loss)  # <- BP304


torch.manual_seed(0)
Trainer().fit(torch.randn(5, 6, 4))
""",
    "two callers of one helper": """
import torch
from torch import nn

torch.manual_seed(0)
net, other = nn.Linear(3, 2), nn.Linear(3, 2)
opt = torch.optim.SGD([*net.parameters(), *other.parameters()], lr=0.1)
totals = {"a": 0.0, "b": 0.0}


def count(key, value):
    totals[key] += value  # <- BP304


for x in torch.randn(4, 5, 3):
    one, two = net(x).square().mean(), other(x).abs().mean()
    opt.zero_grad()
    (one + two).backward()
    opt.step()
    count("a", one)
    count("b", two)
print(totals)
""",
    "of two callers one hands in a number": """
import torch
from torch import nn


class Mean:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def add(self, value, size):
        self.total = self.total + value * size
        self.count += size


torch.manual_seed(0)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
cost, share = Mean(), Mean()
for x in torch.randn(5, 8, 3):
    out = net(x).squeeze(-1)
    squared = (out - 1).square().mean()
    opt.zero_grad()
    squared.backward()
    opt.step()
    cost.add(squared, 8)  # <- BP304
    share.add((out > 0).float().mean().item(), 8)
print(float(cost.total) / cost.count, share.total / share.count)
""",
    "a state that begins anew without history": """
import torch
from torch import nn

torch.manual_seed(0)
force = nn.Linear(2, 1)
opt = torch.optim.SGD(force.parameters(), lr=0.01)
for _ in range(3):
    place, costs = torch.ones(2), []
    for _ in range(12):
        pull = force(place).squeeze()
        costs.append(pull.square())
        speed = place[1]
        change = pull - 0.2 * speed
        speed = speed + 0.1 * change
        place = torch.stack([place[0] + 0.1 * speed, speed]).detach()
    loss = torch.stack(costs).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a mean that is asked for as a tensor elsewhere": """
import torch
from torch import nn


class Smooth:
    mean = None

    def update(self, new):
        self.mean = new if self.mean is None else 0.9 * self.mean + 0.1 * new

    def show(self):
        return f"{self.mean.item():.3f}"


torch.manual_seed(0)
net, smooth = nn.Linear(3, 1), Smooth()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(5, 8, 3):
    loss = net(x).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    smooth.update(loss)  # <- BP304
print(smooth.show())
""",
    "a board that takes what it adds up by keywords": """
import torch
from torch import nn


class Sum:
    def __init__(self):
        self.total = 0.0

    def add(self, value):
        self.total = self.total + value


class Board:
    def __init__(self, *names):
        self.sums = {name: Sum() for name in names}

    def record(self, **values):
        for name, value in values.items():
            self.sums[name].add(value)


torch.manual_seed(0)
net, board = nn.Linear(3, 1), Board("loss")
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(5, 8, 3):
    loss = net(x).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    board.record(loss=loss)  # <- BP304
""",
    "a board of several values, handed in as numbers": """
import torch
from torch import nn


class Board:
    def __init__(self):
        self.sums = {}

    def add(self, name, value):
        self.sums[name] = self.sums.get(name, 0.0) + value

    def record(self, **values):
        for name, value in values.items():
            self.add(name, value)


torch.manual_seed(0)
net, board = nn.Linear(3, 1), Board()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(5, 8, 3):
    loss = net(x).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    board.record(loss=loss.item(), size=net.weight.norm().item())
""",
}

_METER = (
    SHAPES
    + """
class Meter:
    def __init__(self):
        self.total, self.last = 0.0, 0.0

    def update(self, value, count):
        {lines}

net, meter = nn.Linear(6, 1), Meter()
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(8):
    loss = net(torch.randn(8, 6)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    meter.update({call}
"""
)

PROGRAMS |= {
    "what a meter adds up has a name of its own": _METER.format(
        lines="part = value * count\n        self.total = self.total + part", call="loss, 8)  # <- BP304"
    ),
    "the same by an operator that adds in place": _METER.format(
        lines="part = count * value\n        self.total += part", call="count=8, value=loss)  # <- BP304"
    ),
    "what a meter adds up is also read elsewhere": _METER.format(
        lines="part = value * count\n        self.last = float(part)\n        self.total = self.total + part  # <- BP304",
        call="loss, 8)",
    ),
    "what a meter adds up has a name of its own, and is a number": _METER.format(
        lines="part = value * count\n        self.total = self.total + part", call="loss.item(), 8)"
    ),
    "what a meter adds up has a name of its own, without its history": _METER.format(
        lines="part = value.detach() * count\n        self.total = self.total + part", call="loss, 8)"
    ),
}
