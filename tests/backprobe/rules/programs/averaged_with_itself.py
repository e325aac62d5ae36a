"""BP754 averaged-with-itself."""

PROGRAMS = {
    "target loads itself in method": """
import torch, copy
from torch import nn
torch.manual_seed(0)
class Agent:
    def __init__(self):
        self.q, self.q_target = nn.Linear(4, 2), nn.Linear(4, 2)
        self.opt = torch.optim.Adam(self.q.parameters(), 1e-2)
    def sync(self):
        self.q_target.load_state_dict(self.q_target.state_dict())  # <- BP754
    def learn(self, s, s2):
        with torch.no_grad():
            y = self.q_target(s2).max(1).values
        loss = (self.q(s).max(1).values - y).pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
a = Agent()
for i in range(6):
    a.learn(torch.randn(8, 4), torch.randn(8, 4))
    if i % 2: a.sync()
""",
    "polyak mixes target with target": """
import torch
from torch import nn
torch.manual_seed(0)
q, t = nn.Linear(4, 2), nn.Linear(4, 2)
opt = torch.optim.Adam(q.parameters(), 1e-2)
tau = 0.05
for i in range(4):
    x = torch.randn(8, 4)
    loss = (q(x) - t(x).detach()).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    for p, pt in zip(q.parameters(), t.parameters()):
        pt.data.copy_(tau * pt.data + (1 - tau) * pt.data)  # <- BP754
""",
    "good polyak": """
import torch
from torch import nn
torch.manual_seed(0)
q, t = nn.Linear(4, 2), nn.Linear(4, 2)
opt = torch.optim.Adam(q.parameters(), 1e-2)
tau = 0.05
for i in range(4):
    x = torch.randn(8, 4)
    loss = (q(x) - t(x).detach()).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    for p, pt in zip(q.parameters(), t.parameters()):
        pt.data.copy_(tau * p.data + (1 - tau) * pt.data)
""",
    "good average of two passes with dropout": """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), 0.1)
for x in torch.randn(4, 8, 4):
    out = 0.5 * net(x) + 0.5 * net(x)
    loss = (out - 1).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "good mix of two draws": """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), 0.1)
mix = 0.3
for _ in range(4):
    x = mix * torch.randn(8, 4) + (1 - mix) * torch.randn(8, 4)
    loss = (net(x) - 1).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "in place, by two calls": """
import copy
import torch
from torch import nn

student = nn.Linear(4, 2)
teacher = copy.deepcopy(student).requires_grad_(False)
opt = torch.optim.SGD(student.parameters(), lr=0.1)

@torch.no_grad()
def follow(keep):
    for t, s in zip(teacher.parameters(), student.parameters()):
        t.mul_(keep).add_(t, alpha=1 - keep)  # <- BP754

for x in torch.randn(4, 8, 4):
    opt.zero_grad()
    (student(x) - teacher(x)).pow(2).mean().backward()
    opt.step()
    follow(0.99)
""",
    "the state that it loads has a name": """
import copy
import torch
from torch import nn

net = nn.Linear(4, 2)
target = copy.deepcopy(net)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
keep = 0.9

def sync():
    state = target.state_dict()
    target.load_state_dict(state)  # <- BP754

for turn, x in enumerate(torch.randn(6, 8, 4)):
    with torch.no_grad():
        wanted = target(x) * 0.9
    opt.zero_grad()
    (net(x) - wanted - 1).pow(2).mean().backward()
    opt.step()
    if turn % 2:
        sync()
""",
    "the state of the other network has a name": """
import copy
import torch
from torch import nn

net = nn.Linear(4, 2)
target = copy.deepcopy(net)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
keep = 0.9

def sync():
    state = net.state_dict()
    target.load_state_dict(state)

for turn, x in enumerate(torch.randn(6, 8, 4)):
    with torch.no_grad():
        wanted = target(x) * 0.9
    opt.zero_grad()
    (net(x) - wanted - 1).pow(2).mean().backward()
    opt.step()
    if turn % 2:
        sync()
""",
    "the state that it loads was changed by name": """
import copy
import torch
from torch import nn

net = nn.Linear(4, 2)
target = copy.deepcopy(net)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
keep = 0.9

def sync():
    state, given = target.state_dict(), net.state_dict()
    held = target.state_dict()
    for key in state:
        held[key] = keep * state[key] + (1 - keep) * given[key]
    target.load_state_dict(held)

for turn, x in enumerate(torch.randn(6, 8, 4)):
    with torch.no_grad():
        wanted = target(x) * 0.9
    opt.zero_grad()
    (net(x) - wanted - 1).pow(2).mean().backward()
    opt.step()
    if turn % 2:
        sync()
""",
    "both sides of the average have names, and the rest of the share": """
import copy
import torch
from torch import nn

net = nn.Linear(4, 2)
target = copy.deepcopy(net)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
keep = 0.9

def sync():
    held = target.state_dict()
    for key in held:
        rest = 1 - keep
        old = keep * held[key]
        new = rest * held[key]
        held[key] = old + new  # <- BP754
    target.load_state_dict(held)

for turn, x in enumerate(torch.randn(6, 8, 4)):
    with torch.no_grad():
        wanted = target(x) * 0.9
    opt.zero_grad()
    (net(x) - wanted - 1).pow(2).mean().backward()
    opt.step()
    if turn % 2:
        sync()
""",
    "the sides of an average have names": """
import copy
import torch
from torch import nn

net = nn.Linear(4, 2)
target = copy.deepcopy(net)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
keep = 0.9

def sync():
    held, given = target.state_dict(), net.state_dict()
    for key in held:
        rest = 1 - keep
        old = keep * held[key]
        new = rest * given[key]
        held[key] = old + new
    target.load_state_dict(held)

for turn, x in enumerate(torch.randn(6, 8, 4)):
    with torch.no_grad():
        wanted = target(x) * 0.9
    opt.zero_grad()
    (net(x) - wanted - 1).pow(2).mean().backward()
    opt.step()
    if turn % 2:
        sync()
""",
}
