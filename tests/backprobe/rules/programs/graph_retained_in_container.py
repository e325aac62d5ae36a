"""BP305 graph-retained-in-container."""

RECORDED = """
import torch

class Recorder(dict):
    def log(self, step, **values):
        self[step] = values{mark}

curve = Recorder()
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step, x in enumerate(torch.ones(6, 5, 3)):
    loss = model(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    curve.log(step, loss={loss}, count=1)
print(len(curve))
"""

VALIDATED = """
import torch

class Fit:
    def __init__(self):
        self.net = torch.nn.Linear(3, 1)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.curve = []

    def validate(self, x):
        return (self.net(x) - 1).pow(2).mean()

    def run(self, epochs):
        for x in torch.ones(epochs, 5, 3):
            self.optimizer.zero_grad()
            self.net(x).pow(2).mean().backward()
            self.optimizer.step()
            self.curve.append({kept}){mark}

Fit().run(6)
"""

SHAPES = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
"""

PROGRAMS = {
    "inside a function, and never walked": """
import torch

def main():
    net = torch.nn.Linear(3, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    outputs = {}
    for step, x in enumerate(torch.ones(4, 5, 3)):
        output = net(x)
        opt.zero_grad()
        output.pow(2).mean().backward()
        opt.step()
        outputs[step] = output  # <- BP305
    print(len(outputs))

main()
""",
    "a buffer that is emptied": """
import torch
net = torch.nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
recent = []
for x in torch.ones(6, 5, 3):
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    recent.append(loss)
    if len(recent) > 4:
        recent.pop(0)
print(len(recent))
""",
    "two turns are no pattern": """
import torch
net = torch.nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
history = []
for x in torch.ones(2, 5, 3):
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    history.append(loss)
print(len(history))
""",
    "one and the same tensor is taken in at each step": """
import torch
net = torch.nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
anchor = net(torch.ones(2, 3)).tanh()
kept = []
for x in torch.randn(5, 4, 3):
    opt.zero_grad()
    net(x).pow(2).mean().backward()
    opt.step()
    kept.append(anchor)
print(len(kept))
""",
    "a dict of values that a method stores whole": RECORDED.format(loss="loss", mark="  # <- BP305"),
    "a dict of numbers that a method stores whole": RECORDED.format(loss="loss.item()", mark=""),
    "what a method gives goes in without a name": VALIDATED.format(kept="self.validate(x)", mark="  # <- BP305"),
    "a number of it goes in": VALIDATED.format(kept="self.validate(x).item()", mark=""),
    "what a method gives has no history": VALIDATED.format(kept="self.validate(x.detach()).detach()", mark=""),
    "predictions with their graphs in a dict": SHAPES
    + """
net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(8, 6)).pow(2).mean().backward()
    opt.step()

def predict(batches):
    net.eval()
    found = {}
    for i, x in enumerate(batches):
        found[i] = net(x)  # <- BP305
    return found

print(len(predict(torch.randn(12, 8, 6))))
""",
    "outputs of an evaluation kept without graphs, a list of losses that is walked": SHAPES
    + """
net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    losses = []
    for x in torch.randn(5, 8, 6):
        losses.append(net(x).pow(2).mean())
    opt.zero_grad()
    torch.stack(losses).mean().backward()
    opt.step()
kept = [net(x).detach() for x in torch.randn(12, 8, 6)]
with torch.no_grad():
    total = sum(net(x).pow(2).mean() for x in torch.randn(12, 8, 6))
print(len(kept), float(total))
""",
    "a dict of values is kept before its loss is walked": SHAPES
    + """
class Module(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.outputs = nn.Linear(6, 2), []
    def training_step(self, x):
        out = self.net(x)
        log = {"loss": out.pow(2).mean(), "out": out}
        self.outputs.append(log)  # <- BP305
        return log["loss"]
module = Module()
opt = torch.optim.SGD(module.parameters(), lr=0.1)
for x in torch.randn(6, 8, 6):
    loss = module.training_step(x)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "losses are kept before each is walked": SHAPES
    + """
net = nn.Linear(6, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
losses = []
for x in torch.randn(6, 8, 6):
    loss = net(x).pow(2).mean()
    losses.append(loss)  # <- BP305
    opt.zero_grad()
    loss.backward()
    opt.step()
print(sum(one.item() for one in losses))
""",
    "what a module keeps of one call, walked with its loss": SHAPES
    + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out, self.kept = nn.Linear(6, 6), nn.Linear(6, 1), []
    def forward(self, x):
        self.kept = []
        for _ in range(3):
            x = torch.tanh(self.cell(x))
            self.kept.append(x)
        return self.out(x)
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(6, 8, 6):
    loss = net(x).pow(2).mean() + sum(one.abs().mean() for one in net.kept)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a window of losses that is walked and made anew": SHAPES
    + """
cell = nn.RNNCell(6, 4)
opt = torch.optim.SGD(cell.parameters(), lr=0.1)
h, pending = torch.zeros(8, 4), []
for x in torch.randn(16, 8, 6):
    h = cell(x, h)
    pending.append(h.pow(2).mean())
    if len(pending) == 4:
        opt.zero_grad()
        sum(pending).backward()
        opt.step()
        h, pending = h.detach(), []
""",
    "states of all chunks in one list, which the next state is made of": SHAPES
    + """
cell = nn.GRUCell(6, 4)
opt = torch.optim.Adam(cell.parameters(), lr=1e-2)
states = [torch.zeros(8, 4)]
for chunk in torch.randn(5, 4, 8, 6):
    loss = torch.tensor(0.0)
    for t, x in enumerate(chunk):
        states.append(cell(x, states[-1].detach() if t == 0 else states[-1]))
        loss = loss + states[-1].pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a tuple with names goes into a long deque": """
from collections import deque, namedtuple
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)

Item = namedtuple("Item", "x value")
memory = deque(maxlen=1000)
for x in torch.randn(30, 5, 3):
    value = net(x).mean()
    memory.append(Item(x, value))  # <- BP305

    loss = (net(x) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(len(memory))
""",
    "a tuple with a number goes into a list": """
from collections import deque, namedtuple
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)

memory = []
for step, x in enumerate(torch.randn(6, 5, 3)):
    value = net(x).mean()
    memory.append((step, value))  # <- BP305

    loss = (net(x) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(len(memory))
""",
    "a dict goes into the deque of a buffer": """
from collections import deque, namedtuple
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)

class Buffer:
    def __init__(self, size):
        self.rows: deque = deque(maxlen=size)
    def __len__(self):
        return len(self.rows)
    def push(self, x, value):
        self.rows.append({"x": x, "value": value})  # <- BP305
memory = Buffer(200)
for x in torch.randn(40, 5, 3):
    value = net(x).mean()
    memory.push(x, value)

    loss = (net(x) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(len(memory))
""",
    "a value goes into a long deque without its history": """
from collections import deque, namedtuple
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)

Item = namedtuple("Item", "x value")
memory = deque(maxlen=1000)
for x in torch.randn(30, 5, 3):
    value = net(x).mean()
    memory.append(Item(x, value.detach()))

    loss = (net(x) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(len(memory))
""",
    "a value that was computed without a history goes into a long deque": """
from collections import deque, namedtuple
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)

Item = namedtuple("Item", "x value")
memory = deque(maxlen=1000)
for x in torch.randn(30, 5, 3):
    with torch.no_grad():
        value = net(x).mean()
    memory.append(Item(x, value))

    loss = (net(x) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(len(memory))
""",
    "a deque is soon full": """
from collections import deque, namedtuple
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)

memory = deque(maxlen=12)
for x in torch.randn(40, 5, 3):
    value = net(x).mean()
    memory.append((x, value))

    loss = (net(x) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(len(memory))
""",
    "a deque has taken in a few only": """
from collections import deque, namedtuple
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)

memory = deque(maxlen=50)
for x in torch.randn(8, 5, 3):
    value = net(x).mean()
    memory.append((x, value))

    loss = (net(x) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(len(memory))
""",
    "a deque of numbers beside a list that is walked": """
from collections import deque, namedtuple
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)

Step = namedtuple("Step", "logp reward")
memory = deque(maxlen=5000)
for episode in range(4):
    steps = []
    for x in torch.randn(15, 3):
        steps.append(Step(net(x).squeeze(), x.sum()))
    memory.append(sum(s.reward for s in steps).item())
    loss = -sum(s.logp * s.reward for s in steps)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a deque is walked and emptied": """
from collections import deque, namedtuple
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)

Step = namedtuple("Step", "logp reward")
memory = deque(maxlen=5000)
for episode in range(4):
    for x in torch.randn(15, 3):
        memory.append(Step(net(x).squeeze(), x.sum()))
    loss = -sum(s.logp * s.reward for s in memory)
    opt.zero_grad()
    loss.backward()
    opt.step()
    memory.clear()
""",
    "a value that is stacked later out of what holds it": """
import torch
from collections import deque, namedtuple
from torch import nn
torch.manual_seed(0)
Seen = namedtuple("Seen", "x value")
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
memory = deque(maxlen=100)
for step in range(24):
    x = torch.randn(4)
    value = net(x).squeeze(-1)
    memory.append(Seen(x, value))  # <- BP305
    if step % 4 == 3:
        batch = list(memory)[-4:]
        base = torch.stack([one.value for one in batch]).detach()
        now = net(torch.stack([one.x for one in batch])).squeeze(-1)
        loss = (now - base - 1).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    "two values with a history in one dict": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
seen = []


def compute(x, y):
    scores = net(x)
    loss = nn.functional.cross_entropy(scores, y)
    seen.append({"loss": loss, "scores": scores, "y": y})  # <- BP305
    return loss


for x in torch.randn(5, 6, 4):
    opt.zero_grad()
    compute(x, (x[:, 0] > 0).long()).backward()
    opt.step()
print(torch.cat([one["scores"] for one in seen]).argmax(1).float().mean())
""",
    "a running mean by name, kept by a meter": """
import torch
from torch import nn

class Smoothed:
    def __init__(self):
        self.values = {}

    def update(self, name, value):
        before = self.values.get(name, value)
        self.values[name] = 0.9 * before + 0.1 * value

net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
meter = Smoothed()
for x in torch.randn(8, 5, 4):
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    meter.update("loss", loss)  # <- BP305
""",
    "a running mean by name, kept by a function": """
import torch
from torch import nn

means = {}

def track(name, value):
    means[name] = 0.9 * means.get(name, 0.0) + 0.1 * value

net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(8, 5, 4):
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    track("loss", loss)  # <- BP305
""",
    "a running mean that is handed a value without history": """
import torch
from torch import nn

class Smoothed:
    def __init__(self):
        self.values = {}

    def update(self, name, value):
        before = self.values.get(name, value)
        self.values[name] = 0.9 * before + 0.1 * value

net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
meter = Smoothed()
for x in torch.randn(8, 5, 4):
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    meter.update("loss", loss.detach())
""",
    "a running mean of numbers, with a graph that is used": """
import torch
from torch import nn

class Smoothed:
    def __init__(self):
        self.values = {}

    def update(self, name, value):
        before = self.values.get(name, value)
        self.values[name] = 0.9 * before + 0.1 * value

net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
meter = Smoothed()
for x in torch.randn(8, 5, 4):
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    meter.update("loss", loss.item())
""",
}
