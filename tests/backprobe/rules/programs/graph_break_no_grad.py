"""BP602 graph-break-no-grad."""

MANAGED = """
import contextlib
import torch
from torch import nn

@contextlib.contextmanager
def evaluation(module):
    module.eval()
    with torch.{mode}:
        yield
    module.train()

text, image = nn.Linear(4, 3), nn.Linear(5, 3)
optimizer = torch.optim.SGD([*text.parameters(), *image.parameters()], lr=0.1)
for x in torch.randn(4, 8, 4):
    {around}
        t = text(x)
    optimizer.zero_grad()
    (image(torch.randn(8, 5)) - t).pow(2).mean().backward()
    optimizer.step()
"""

PROGRAMS = {
    "a decorator without a call": """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.head = nn.Linear(4, 4), nn.Linear(4, 1)

    @torch.no_grad  # <- BP602
    def features(self, x):
        return self.trunk(x)

    def forward(self, x):
        return self.head(self.features(x))

net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    loss = net(torch.randn(5, 4)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "the whole loss under no_grad": """
import torch
from torch import nn

net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
with torch.no_grad():  # <- BP602
    loss = net(torch.randn(5, 3)).pow(2).mean()
loss.backward()
""",
    "leaves under set_grad_enabled": """
import torch
scale = torch.ones(3, requires_grad=True)
shift = torch.zeros(3, requires_grad=True)
opt = torch.optim.SGD([scale, shift], lr=0.1)
for x in torch.randn(3, 5, 3):
    with torch.set_grad_enabled(False):  # <- BP602
        y = x * scale
    loss = (y + shift).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a validation loop beside the training": """
import torch
from torch import nn

net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    loss = net(torch.randn(5, 3)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        print(net(torch.randn(5, 3)).mean())
""",
    "nothing else has a history, and the call raises": """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(3, 4), nn.SELU(), nn.Linear(4, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=0.1)

def gap(ones, others):
    def near(a, b):
        return torch.exp(-torch.cdist(a, b) ** 2).mean()
    return near(ones, ones) + near(others, others) - 2 * near(ones, others)

def sample(n):
    with torch.no_grad():  # <- BP602
        return net(torch.randn(n, 3))

for _ in range(2):
    optimizer.zero_grad()
    loss = gap(sample(8), torch.randn(8, 2))
    loss.backward()
    optimizer.step()
""",
    "a context manager of one's own": MANAGED.format(around="with evaluation(text):  # <- BP602", mode="no_grad()"),
    "a context manager of one's own that tracks": MANAGED.format(around="with evaluation(text):", mode="enable_grad()"),
    "right: a term is taken out of what a call gives, as its greatest value": """
import torch
from torch import nn

torch.manual_seed(3)
actor, heads = nn.Linear(4, 3), nn.Linear(7, 5)
opt = torch.optim.Adam([*actor.parameters(), *heads.parameters()], 1e-2)
x = torch.randn(12, 4)
for _ in range(4):
    with torch.no_grad():
        x = x + 0.1 * torch.cat([actor(x), x[:, :1]], 1)
    act = actor(x)
    loss = (0.1 * act.square().sum(1) - heads(torch.cat([x, act], 1)).max(1)[0]).mean()
    loss = loss + 0.01 * torch.topk(act, 2, dim=1).values.abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a term under no_grad that is taken out of what a call gives": """
import torch
from torch import nn

torch.manual_seed(3)
body, head = nn.Linear(4, 5), nn.Linear(5, 2)
opt = torch.optim.Adam([*body.parameters(), *head.parameters()], 1e-2)
for x in torch.randn(4, 12, 4):
    fit = head(body(x)).square().mean()
    with torch.no_grad():  # <- BP602
        margin = body(x).max(1).values.mean()
    loss = fit + 0.1 * margin
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "an action for the world, and the same in the loss": """
import torch
from torch import nn


class Agent:
    def __init__(self):
        self.actor, self.critic = nn.Linear(3, 2), nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 1))
        self.optimizer = torch.optim.SGD([*self.actor.parameters(), *self.critic.parameters()], lr=0.1)

    @torch.no_grad()
    def act(self, obs, noise=0.0):
        move = self.actor(obs)
        return (move + noise * torch.randn_like(move)).clamp(-1, 1)

    def learn(self, obs):
        loss = -self.critic(torch.cat([obs, self.act(obs)], 1)).mean()  # <- BP602
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


torch.manual_seed(0)
agent, state = Agent(), torch.randn(8, 3)
for _ in range(4):
    move = agent.act(state, noise=0.1)
    state = state + torch.cat([move, move[:, :1]], 1)
    agent.learn(state)
""",
    "an action under a block, bound before the loss": """
import torch
from torch import nn


class Agent:
    def __init__(self):
        self.actor, self.critic = nn.Linear(3, 2), nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 1))
        self.optimizer = torch.optim.SGD([*self.actor.parameters(), *self.critic.parameters()], lr=0.1)

    def act(self, obs, noise=0.0):
        with torch.no_grad():
            move = self.actor(obs)
            return move + noise * torch.randn_like(move)

    def learn(self, obs):
        action = self.act(obs)  # <- BP602
        loss = -self.critic(torch.cat([obs, action], 1)).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


torch.manual_seed(0)
agent, state = Agent(), torch.randn(8, 3)
for _ in range(4):
    move = agent.act(state, noise=0.1)
    state = state + torch.cat([move, move[:, :1]], 1)
    agent.learn(state)
""",
    "called in the loss alone": """
import torch
from torch import nn


class Agent:
    def __init__(self):
        self.actor, self.critic = nn.Linear(3, 2), nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 1))
        self.optimizer = torch.optim.SGD([*self.actor.parameters(), *self.critic.parameters()], lr=0.1)

    @torch.no_grad()  # <- BP602
    def act(self, obs, noise=0.0):
        move = self.actor(obs)
        return (move + noise * torch.randn_like(move)).clamp(-1, 1)

    def learn(self, obs):
        loss = -self.critic(torch.cat([obs, self.act(obs)], 1)).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


torch.manual_seed(0)
agent, state = Agent(), torch.randn(8, 3)
for _ in range(4):
    move = torch.randn(8, 2)
    state = state + torch.cat([move, move[:, :1]], 1)
    agent.learn(state)
""",
    "called in two terms of the loss": """
import torch
from torch import nn


class Agent:
    def __init__(self):
        self.actor, self.critic = nn.Linear(3, 2), nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 1))
        self.optimizer = torch.optim.SGD([*self.actor.parameters(), *self.critic.parameters()], lr=0.1)

    @torch.no_grad()  # <- BP602
    def act(self, obs, noise=0.0):
        move = self.actor(obs)
        return (move + noise * torch.randn_like(move)).clamp(-1, 1)

    def learn(self, obs):
        loss = -self.critic(torch.cat([obs, self.act(obs)], 1)).mean()
        loss = loss - self.critic(torch.cat([obs, self.act(-obs)], 1)).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


torch.manual_seed(0)
agent, state = Agent(), torch.randn(8, 3)
for _ in range(4):
    move = agent.act(state, noise=0.1)
    state = state + torch.cat([move, move[:, :1]], 1)
    agent.learn(state)
""",
    "called for the world alone": """
import torch
from torch import nn


class Agent:
    def __init__(self):
        self.actor, self.critic = nn.Linear(3, 2), nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 1))
        self.optimizer = torch.optim.SGD([*self.actor.parameters(), *self.critic.parameters()], lr=0.1)

    @torch.no_grad()
    def act(self, obs, noise=0.0):
        move = self.actor(obs)
        return (move + noise * torch.randn_like(move)).clamp(-1, 1)

    def learn(self, obs):
        loss = -self.critic(torch.cat([obs, self.actor(obs)], 1)).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


torch.manual_seed(0)
agent, state = Agent(), torch.randn(8, 3)
for _ in range(4):
    move = agent.act(state, noise=0.1)
    state = state + torch.cat([move, move[:, :1]], 1)
    agent.learn(state)
""",
    "a decorated method that calls the module itself, in the training loop": """
import torch
from torch import nn

class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.out = nn.Linear(4, 6), nn.Linear(6, 3)

    def forward(self, x):
        return self.out(self.inner(x).relu())

    @torch.no_grad()  # <- BP602
    def encode(self, x, size=4):
        return torch.cat([self(part) for part in x.split(size)])

encoder, head = Encoder(), nn.Linear(3, 1)
optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=1e-2)
for x in torch.randn(4, 8, 4):
    loss = (head(encoder.encode(x)) - x.sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "a decorated function, with a helper between it and the layers": """
import torch
from torch import nn

class Trainer:
    def __init__(self):
        self.body, self.head = nn.Linear(4, 6), nn.Linear(6, 1)
        self.optimizer = torch.optim.SGD([*self.body.parameters(), *self.head.parameters()], lr=0.1)

    def hidden(self, x):
        scaled = x / 2
        return self.body(scaled).tanh()

    @torch.no_grad  # <- BP602
    def features(self, x):
        return self.hidden(x)

    def fit(self, batches):
        for x in batches:
            loss = (self.head(self.features(x)) - x.sum(1, keepdim=True)).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

Trainer().fit(torch.randn(4, 8, 4))
""",
    "a decorated closure hands the model to a list of blocks": """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.inner = nn.Linear(n, n)

    def forward(self, x):
        return x + self.inner(x)

def make_embed(blocks):
    @torch.set_grad_enabled(False)  # <- BP602
    def embed(x):
        for block in blocks:
            x = block(x)
        return x
    return embed

blocks = nn.ModuleList([Block(4), Block(4)])
head = nn.Linear(4, 1)
embed = make_embed(blocks)
optimizer = torch.optim.SGD([*blocks.parameters(), *head.parameters()], lr=0.1)
for x in torch.randn(4, 8, 4):
    optimizer.zero_grad()
    head(embed(x)).pow(2).mean().backward()
    optimizer.step()
""",
    "right: a decorated method is for the index, training calls the module": """
import torch
from torch import nn

class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 3)

    def forward(self, x):
        return self.inner(x)

    @torch.no_grad()
    def encode(self, x):
        return self(x)

encoder, head = Encoder(), nn.Linear(3, 1)
optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=1e-2)
bank = encoder.encode(torch.randn(8, 4))
for x in torch.randn(4, 8, 4):
    nearest = (encoder(x) @ encoder.encode(x).t()).mean()
    loss = (head(encoder(x)) - x.sum(1, keepdim=True)).pow(2).mean() + nearest.pow(2)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "right: features of what no optimizer holds": """
import torch
from torch import nn

class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 6)

    def forward(self, x):
        return self.inner(x).relu()

    @torch.no_grad()
    def features(self, x):
        return self(x)

body, head = Body(), nn.Linear(6, 1)
optimizer = torch.optim.Adam(head.parameters(), lr=1e-2)
for x in torch.randn(4, 8, 4):
    loss = (head(body.features(x)) - x.sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "right: the slow copy gives targets by a decorated method": """
import copy
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 3)

    def forward(self, x):
        return self.inner(x)

    @torch.no_grad()
    def target(self, x):
        return self(x)

online = Net()
slow = copy.deepcopy(online)
optimizer = torch.optim.SGD(online.parameters(), lr=0.1)
for x in torch.randn(4, 8, 4):
    loss = (online(x) - slow.target(x.flip(1))).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for ours, theirs in zip(slow.parameters(), online.parameters()):
            ours.lerp_(theirs, 0.1)
""",
    "a method that is decorated uses the same encoder for evaluation, training detaches": """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.head = nn.Linear(4, 6), nn.Linear(6, 1)
        self.cache = None

    def encode(self, x):
        memory = self.encoder(x)
        self.cache = memory.detach()  # <- BP601
        return self.cache

    def forward(self, x):
        return self.head(self.encode(x))

    @torch.no_grad()
    def predict(self, x):
        return self.head(self.encode(x)).sign()

model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(4, 8, 4):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
print(model.predict(torch.randn(2, 4)).mean())
""",
}

_TOWERS = """
import torch
from torch import nn


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))

    def forward(self, x):
        return self.body(x)


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = Tower(), Tower()
{methods}

pair = Pair()
optimizer = torch.optim.SGD(pair.parameters(), lr=0.1)
for x in torch.randn(4, 8, 4):
    optimizer.zero_grad()
    pair(x).diagonal().mean().neg().backward()
    optimizer.step()
{after}"""

PROGRAMS |= {
    "the other tower of one class runs in a method without gradients": _TOWERS.format(
        methods="""
    @torch.no_grad()
    def index(self, x):
        return self.right(x)

    def table(self):
        return self.index(torch.eye(4))

    def forward(self, x):
        return self.left(x) @ self.index(x).T  # <- BP602
""",
        after="print(pair.table().shape)\n",
    ),
    "the other tower of one class runs under a block": _TOWERS.format(
        methods="""
    def forward(self, x):
        with torch.inference_mode():  # <- BP602
            other = self.right(x)
        return self.left(x) @ other.clone().T
""",
        after="",
    ),
    "the towers are evaluated without gradients and trained with them": _TOWERS.format(
        methods="""
    @torch.no_grad()
    def index(self, x):
        return self.right(x)

    def forward(self, x):
        return self.left(x) @ self.right(x).T
""",
        after="print((pair.left(x) @ pair.index(x).T).argmax(1))\n",
    ),
    "a sum of losses starts from zero, and what was played without gradients is looked up": """
import torch
from torch import nn

class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.q = nn.GRUCell(4, 12), nn.Linear(12, 3)

    def forward(self, seen, h):
        h = self.rnn(seen, h)
        return self.q(h), h

@torch.no_grad()
def play(agent):
    h, steps = torch.zeros(2, 12), []
    for _ in range(4):
        seen = torch.randn(2, 4)
        q, h = agent(seen, h)
        steps.append({"seen": seen, "act": q.argmax(1), "won": torch.rand(2)})
    return steps

agent = Agent()
opt = torch.optim.RMSprop(agent.parameters(), lr=1e-3)
for _ in range(4):
    steps = play(agent)
    h, loss = torch.zeros(2, 12), 0.0
    for step in steps:
        q, h = agent(step["seen"], h)
        act = step["act"].unsqueeze(1)
        chosen = q.gather(1, act)
        off = chosen.squeeze(1) - step["won"]
        term = off.pow(2).mean()
        loss = loss + term
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}

_BEFORE = "        loss = -self.critic(torch.cat([obs, action], 1)).mean()\n"
_PAIR = "        pair = torch.cat([obs, action], 1)\n        loss = -self.critic(pair).mean()\n"

PROGRAMS |= {
    "an action under a block, joined to what was seen before the loss": PROGRAMS[
        "an action under a block, bound before the loss"
    ].replace(_BEFORE, _PAIR),
    "the same, and another action that is only measured": PROGRAMS[
        "an action under a block, bound before the loss"
    ].replace(_BEFORE, f"{_PAIR}        other = self.act(-obs)\n        size = other.abs().mean()\n"),
}
