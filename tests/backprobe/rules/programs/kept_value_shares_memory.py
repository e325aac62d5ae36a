"""BP753 kept-value-shares-memory."""

PROGRAMS = {
    "old weights without clone to measure change": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
for x in torch.randn(6, 8, 4):
    before = net.weight.detach()  # <- BP753
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
    print((net.weight - before).norm().item())
""",
    "best weights by reference of parameters": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
best, best_loss = None, float("inf")
for x in torch.randn(6, 8, 4):
    optimizer.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    if loss.item() < best_loss:
        best_loss = loss.item()
        best = [p.data for p in net.parameters()]  # <- BP753
with torch.no_grad():
    for p, b in zip(net.parameters(), best):
        p.copy_(b)
""",
    "start of a proximal term without clone": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
anchor = {name: p.data for name, p in net.named_parameters()}  # <- BP753
for x in torch.randn(4, 8, 4):
    loss = net(x).pow(2).mean()
    for name, p in net.named_parameters():
        loss = loss + 0.1 * (p - anchor[name]).pow(2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "distance to a list of parameters": """
import torch
from torch import nn

torch.manual_seed(0)
class Watch:
    def __init__(self, model):
        self.model = model
        self.start = [p.detach() for p in model.parameters()]  # <- BP753

    def moved(self):
        return sum((p - s).norm().item() for p, s in zip(self.model.parameters(), self.start))

net = nn.Linear(4, 1)
watch = Watch(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(4, 8, 4):
    loss = net(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(watch.moved())
""",
    "clone of weights before": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
for x in torch.randn(6, 8, 4):
    before = net.weight.detach().clone()
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
    print((net.weight - before).norm().item())
""",
    "proximal term with clones; copies of two models": """
import torch
from torch import nn

torch.manual_seed(0)
net, other = nn.Linear(4, 1), nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
anchor = {name: p.detach().clone() for name, p in net.named_parameters()}
view = net.weight.data
for x in torch.randn(4, 8, 4):
    loss = net(x).pow(2).mean()
    for name, p in net.named_parameters():
        loss = loss + 0.1 * (p - anchor[name]).pow(2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        view.clamp_(-1, 1)
        other.weight.copy_(net.weight.data)
        print((net.weight - net.weight.detach()).sum().item())
""",
    "states of one worker, gathered in a list and averaged": """
import torch
from torch import nn

def local(worker, start, x):
    worker.load_state_dict(start)
    optimizer = torch.optim.SGD(worker.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        (worker(x) - x.sum(1, keepdim=True)).pow(2).mean().backward()
        optimizer.step()
    return worker.state_dict()  # <- BP753

def average(states):
    return {key: sum(state[key] for state in states) / len(states) for key in states[0]}

server, worker = nn.Linear(4, 1), nn.Linear(4, 1)
clients = torch.randn(3, 8, 4)
for _ in range(3):
    states = []
    for x in clients:
        state = local(worker, server.state_dict(), x)
        states.append(state)
    server.load_state_dict(average(states))
""",
    "an environment that changes its state and returns it": """
import torch
from torch import nn

class World:
    def __init__(self):
        self.place = torch.zeros(2)

    def step(self, push):
        self.place += push  # <- BP753
        return self.place

def play(world, length):
    seen = []
    for _ in range(length):
        push = torch.randn(2)
        place = world.step(push)
        seen.append((place, push))
    return [torch.stack(column) for column in zip(*seen)]

places, pushes = play(World(), 12)
net = nn.Linear(2, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    (net(places) - pushes).pow(2).mean().backward()
    optimizer.step()
""",
    "the path of a point that is optimised, in an attribute": """
import torch

class Search:
    def __init__(self):
        self.point = torch.randn(3, requires_grad=True)
        self.path = []
        self.optimizer = torch.optim.SGD([self.point], lr=0.1)

    def step(self):
        self.optimizer.zero_grad()
        self.point.pow(2).sum().backward()
        self.optimizer.step()
        self.path.append(self.point.detach())  # <- BP753

search = Search()
for _ in range(6):
    search.step()
print(torch.stack(search.path).std(0))
""",
    "weights by epoch as arrays, of memory that numpy shares": """
import torch
from torch import nn

net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
weight = net.weight
kept = []
for x in torch.randn(6, 8, 3):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
    kept.append(weight.detach().numpy())  # <- BP753
print(max(abs(kept[0] - kept[-1]).ravel()))
""",
    "states of a model at several times, gathered in one list": """
import torch
from torch import nn

net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
members = []
for cycle in range(4):
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()
    members.append(net.state_dict())  # <- BP753
other = nn.Linear(3, 1)
for state in members:
    other.load_state_dict(state)
    print(other(torch.ones(1, 3)).item())
""",
    "right: parameters are listed anew in each epoch": """
import torch
from torch import nn

net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(5):
    large = []
    for p in net.parameters():
        if p.dim() > 1:
            large.append(p)
    optimizer.zero_grad()
    loss = net(torch.randn(8, 3)).pow(2).mean() + 0.01 * sum(p.pow(2).sum() for p in large)
    loss.backward()
    optimizer.step()
""",
    "right: what is kept is taken out before the next change": """
import collections
import torch
from torch import nn

net = nn.Linear(2, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
state, waiting = torch.zeros(2), collections.deque()
for _ in range(8):
    state += torch.randn(2)
    waiting.append(state)
    x = waiting.popleft()
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
""",
    "right: a copy is kept of what is changed in place": """
import torch

point = torch.randn(3, requires_grad=True)
optimizer = torch.optim.SGD([point], lr=0.1)
path, total, curve = [], torch.zeros(()), []
for _ in range(6):
    optimizer.zero_grad()
    loss = point.pow(2).sum()
    loss.backward()
    optimizer.step()
    total += loss.detach()
    path.append(point.detach().clone())
    curve.append(total.item())
print(torch.stack(path).std(0), curve[-1])
""",
    "right: rows of a buffer, each at its own place": """
import torch
from torch import nn

net, buffer = nn.Linear(2, 2), torch.zeros(6, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
rows = []
for i in range(6):
    row = buffer[i]
    row += torch.randn(2)
    rows.append(row)
for _ in range(2):
    optimizer.zero_grad()
    net(torch.stack(rows)).pow(2).mean().backward()
    optimizer.step()
""",
    "right: a function is called for each episode, and begins its list anew": """
import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

def weights_of(layers):
    found = []
    for layer in layers:
        weight = layer.weight
        found.append(weight)
    return found

for _ in range(5):
    penalty = sum(weight.abs().sum() for weight in weights_of([net]))
    optimizer.zero_grad()
    (net(torch.randn(8, 2)).pow(2).mean() + 0.01 * penalty).backward()
    optimizer.step()
""",
}
