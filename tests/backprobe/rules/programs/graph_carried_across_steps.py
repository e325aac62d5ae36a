"""BP302 graph-carried-across-steps."""

PROGRAMS = {
    "a sum that grows in place": """
import torch
w = torch.ones(3, requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
total = 0.0
for i in range(3):
    loss = (w * w).sum()
    total += loss  # <- BP302
    opt.zero_grad()
    total.backward()
    opt.step()
""",
    "a state kept by the module, stepped by a trainer": """
import torch
from torch import nn

class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 4)
        self.hidden = torch.zeros(2, 4)

    def forward(self, x):
        self.hidden = self.cell(x, self.hidden)  # <- BP302
        return self.hidden

class Trainer:
    def __init__(self):
        self.net = Cell()
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def step(self, x):
        out = self.net(x)
        loss = out.pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

trainer = Trainer()
for x in torch.ones(3, 2, 3):
    trainer.step(x)
""",
    "a tuple of states": """
import torch
from torch import nn
rnn = nn.LSTM(2, 3)
opt = torch.optim.SGD(rnn.parameters(), lr=0.1)
state = None
for x in torch.ones(3, 4, 1, 2):
    y, state = rnn(x, state)  # <- BP302
    opt.zero_grad()
    y.pow(2).mean().backward()
    opt.step()
""",
    "retained, over weights that were stepped": """
import torch
cell = torch.nn.GRUCell(2, 3)
opt = torch.optim.SGD(cell.parameters(), lr=0.1)
state = torch.zeros(4, 3)
for x in torch.ones(3, 4, 2):
    state = cell(x, state)  # <- BP302
    loss = state.pow(2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
""",
    "a state that only a list holds": """
import torch
cell = torch.nn.GRUCell(2, 3)
opt = torch.optim.SGD(cell.parameters(), lr=0.1)
states = [torch.zeros(4, 3)]
for x in torch.ones(3, 4, 2):
    h = cell(x, states[-1])  # <- BP302
    states.append(h)
    opt.zero_grad()
    h.pow(2).mean().backward()
    opt.step()
""",
    "a state that only a list holds, cut off": """
import torch
cell = torch.nn.GRUCell(2, 3)
opt = torch.optim.SGD(cell.parameters(), lr=0.1)
states = [torch.zeros(4, 3)]
for x in torch.ones(3, 4, 2):
    h = cell(x, states[-1].detach())
    states = [h]
    opt.zero_grad()
    h.pow(2).mean().backward()
    opt.step()
""",
    "a fake walked by both players is no carried state": """
import torch
from torch import nn
G, D = nn.Linear(2, 3), nn.Linear(3, 1)
og, od = torch.optim.SGD(G.parameters(), lr=0.1), torch.optim.SGD(D.parameters(), lr=0.1)
for _ in range(2):
    fake = G(torch.ones(4, 2)).tanh()
    d_loss = D(fake).pow(2).mean()
    od.zero_grad()
    d_loss.backward()
    od.step()
    g_loss = (D(fake) - 1).pow(2).mean()
    og.zero_grad()
    g_loss.backward()  # <- BP301
    og.step()
""",
    "an agent that keeps its state after the step": """
import torch
from torch import nn


class Agent:
    def __init__(self):
        self.cell, self.head = nn.GRUCell(3, 6), nn.Linear(6, 2)
        self.h = torch.zeros(1, 6)
        self.opt = torch.optim.Adam([*self.cell.parameters(), *self.head.parameters()], lr=1e-2)

    def act(self, obs):
        after = self.cell(obs, self.h)
        return self.head(after), after

    def learn(self, obs, reward):
        scores, after = self.act(obs)
        loss = -(reward * scores.log_softmax(-1)[0, 0])
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.h = after  # <- BP302


torch.manual_seed(1)
agent = Agent()
for step in range(4):
    agent.learn(torch.randn(1, 3), 1.0)
""",
    "a history whose last entry goes into a sum": """
import torch
from torch import nn

torch.manual_seed(2)


class History:
    def __init__(self):
        self.codes = [torch.zeros(4, 5)]

    def on_batch_end(self, code):
        self.codes.append(code)


encoder, head = nn.Linear(3, 5), nn.Linear(5, 1)
history = History()
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.05)


def batch_loss(x, seen):
    code = torch.tanh(encoder(x))
    drift = (code - seen.codes[-1]).pow(2).mean()  # <- BP302
    return head(code).pow(2).mean() + 0.1 * drift, code


for x in torch.randn(4, 4, 3):
    loss, code = batch_loss(x, history)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.on_batch_end(code)
""",
    "a memory that one method writes and another reads": """
import torch
from torch import nn


class Memory:
    def __init__(self, width):
        self.value = torch.zeros(1, width)

    def read(self, n):
        return self.value.expand(n, -1)

    def write(self, news):
        self.value = news.mean(0, keepdim=True)  # <- BP302


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(8, 4)
        self.out = nn.Linear(4, 1)
        self.memory = Memory(4)

    def forward(self, x):
        past = self.memory.read(len(x))
        h = torch.tanh(self.mix(torch.cat([x, past], 1)))
        self.memory.write(h)
        return self.out(h)


torch.manual_seed(0)
net = Reader()
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def train(batches):
    for x in batches:
        opt.zero_grad()
        net(x).pow(2).mean().backward()
        opt.step()


train(torch.randn(3, 5, 4))
""",
    "a layer with a trace, over several times": """
import torch
from torch import nn


class Trace(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width, self.trace = width, None
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x):
        old = torch.zeros_like(x) if self.trace is None else self.trace
        new = 0.8 * old + self.gain * x
        self.trace = new.clone()  # <- BP302
        return torch.tanh(new)


torch.manual_seed(3)
model = nn.Sequential(nn.Linear(3, 4), Trace(4), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def unrolled(x):
    return torch.stack([model(part) for part in x.unbind(1)]).mean()


for x in torch.randn(3, 6, 4, 3):
    loss = (unrolled(x) - 1) ** 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "what the optimizer holds is bound anew to a projection": """
import torch

torch.manual_seed(0)
code = torch.randn(6, requires_grad=True)
opt = torch.optim.Adam([code], lr=0.1)
wanted = torch.randn(6)
for _ in range(3):
    loss = (code - wanted).square().sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    code = code / code.norm()  # <- BP302
""",
    "a list of penalties is filled in forward and never emptied": """
import torch
from torch import nn

torch.manual_seed(1)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 2)
        self.terms = []

    def forward(self, x):
        h = self.a(x).tanh()
        self.terms.append(h.abs().mean())  # <- BP302
        return self.b(h)

net = Net()
opt = torch.optim.SGD(net.parameters(), 1e-2)
for x in torch.randn(3, 8, 4):
    loss = net(x).square().mean() + 0.1 * sum(net.terms)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a list of activations is filled by a hook and never emptied": """
import torch
from torch import nn

torch.manual_seed(1)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
opt = torch.optim.SGD(net.parameters(), 1e-2)
seen = []

def keep(module, given, out):
    seen.append(out.pow(2).mean())  # <- BP302

net[1].register_forward_hook(keep)
for x in torch.randn(3, 8, 4):
    loss = net(x).square().mean() + 0.1 * torch.stack(seen).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "right: the list of penalties is emptied where it is read": """
import torch
from torch import nn

torch.manual_seed(1)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 2)
        self.terms = []

    def forward(self, x):
        h = self.a(x).tanh()
        self.terms.append(h.abs().mean())
        return self.b(h)

    def penalty(self):
        total, self.terms = sum(self.terms), []
        return total

net = Net()
opt = torch.optim.SGD(net.parameters(), 1e-2)
for x in torch.randn(3, 8, 4):
    loss = net(x).square().mean() + 0.1 * net.penalty()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "losses are put into a dict under one name for each batch": """
import torch
from torch import nn

torch.manual_seed(1)
net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), 1e-2)
parts = {}
for turn, x in enumerate(torch.randn(3, 8, 4)):
    parts[turn] = net(x).square().mean()  # <- BP302
    opt.zero_grad()
    torch.stack(list(parts.values())).mean().backward()
    opt.step()
""",
    "a queue is fed with what has a history": """
import torch
import torch.nn.functional as F
from torch import nn


class Bank:
    def __init__(self, size):
        self.rows = F.normalize(torch.randn(size, 4), dim=1)

    def logits(self, z):
        return z @ self.rows.T

    def push(self, new):
        self.rows = torch.cat([new, self.rows])[:12]


net, bank = nn.Linear(5, 4), Bank(12)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    z = F.normalize(net(torch.randn(4, 5)), dim=1)
    loss = F.cross_entropy(bank.logits(z), torch.arange(4))
    opt.zero_grad()
    loss.backward()
    opt.step()
    bank.push(z)  # <- BP302
""",
    "rows of a bank are mixed with what has a history": """
import torch
import torch.nn.functional as F
from torch import nn


class Bank:
    def __init__(self, size):
        self.rows = F.normalize(torch.randn(size, 4), dim=1)

    def logits(self, z):
        return z @ self.rows.T

    def mix(self, at, new, rate=0.5):
        mixed = rate * self.rows[at] + (1 - rate) * new
        self.rows[at] = F.normalize(mixed, dim=1)


net, bank = nn.Linear(5, 4), Bank(12)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    z = F.normalize(net(torch.randn(4, 5)), dim=1)
    loss = F.cross_entropy(bank.logits(z), torch.arange(4))
    opt.zero_grad()
    loss.backward()
    opt.step()
    bank.mix(torch.randperm(12)[:4], z)  # <- BP302
""",
    "a queue is fed with values": """
import torch
import torch.nn.functional as F
from torch import nn


class Bank:
    def __init__(self, size):
        self.rows = F.normalize(torch.randn(size, 4), dim=1)

    def logits(self, z):
        return z @ self.rows.T

    def push(self, new):
        self.rows = torch.cat([new, self.rows])[:12]


net, bank = nn.Linear(5, 4), Bank(12)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    z = F.normalize(net(torch.randn(4, 5)), dim=1)
    loss = F.cross_entropy(bank.logits(z), torch.arange(4))
    opt.zero_grad()
    loss.backward()
    opt.step()
    bank.push(z.detach())
""",
    "rows of a bank are mixed with values": """
import torch
import torch.nn.functional as F
from torch import nn


class Bank:
    def __init__(self, size):
        self.rows = F.normalize(torch.randn(size, 4), dim=1)

    def logits(self, z):
        return z @ self.rows.T

    def mix(self, at, new, rate=0.5):
        mixed = rate * self.rows[at] + (1 - rate) * new
        self.rows[at] = F.normalize(mixed, dim=1)


net, bank = nn.Linear(5, 4), Bank(12)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    z = F.normalize(net(torch.randn(4, 5)), dim=1)
    loss = F.cross_entropy(bank.logits(z), torch.arange(4))
    opt.zero_grad()
    loss.backward()
    opt.step()
    bank.mix(torch.randperm(12)[:4], z.detach())
""",
    "rows of a bank are mixed, each half by name, with what has a history": """
import torch
import torch.nn.functional as F
from torch import nn


class Bank:
    def __init__(self, size):
        self.rows = F.normalize(torch.randn(size, 4), dim=1)

    def logits(self, z):
        return z @ self.rows.T

    def mix(self, at, new, rate=0.5):
        old = rate * self.rows[at]
        fresh = (1 - rate) * new
        mixed = old + fresh
        self.rows[at] = F.normalize(mixed, dim=1)


net, bank = nn.Linear(5, 4), Bank(12)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    z = F.normalize(net(torch.randn(4, 5)), dim=1)
    loss = F.cross_entropy(bank.logits(z), torch.arange(4))
    opt.zero_grad()
    loss.backward()
    opt.step()
    bank.mix(torch.randperm(12)[:4], z)  # <- BP302
""",
    "rows of a bank are mixed, each half by name, with values": """
import torch
import torch.nn.functional as F
from torch import nn


class Bank:
    def __init__(self, size):
        self.rows = F.normalize(torch.randn(size, 4), dim=1)

    def logits(self, z):
        return z @ self.rows.T

    def mix(self, at, new, rate=0.5):
        old = rate * self.rows[at]
        fresh = (1 - rate) * new
        mixed = old + fresh
        self.rows[at] = F.normalize(mixed, dim=1)


net, bank = nn.Linear(5, 4), Bank(12)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    z = F.normalize(net(torch.randn(4, 5)), dim=1)
    loss = F.cross_entropy(bank.logits(z), torch.arange(4))
    opt.zero_grad()
    loss.backward()
    opt.step()
    bank.mix(torch.randperm(12)[:4], z.detach())
""",
    "a queue that runs a layer itself": """
import torch
import torch.nn.functional as F
from torch import nn


class Bank:
    def __init__(self, size):
        self.rows = F.normalize(torch.randn(size, 4), dim=1)

    def logits(self, z):
        return z @ self.rows.T

    def keep(self, head, new):
        self.rows = torch.cat([head(new), self.rows])[:12]  # <- BP302


net, bank = nn.Linear(5, 4), Bank(12)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    z = F.normalize(net(torch.randn(4, 5)), dim=1)
    loss = F.cross_entropy(bank.logits(z), torch.arange(4))
    opt.zero_grad()
    loss.backward()
    opt.step()
    bank.keep(nn.Linear(4, 4), z)
""",
}
