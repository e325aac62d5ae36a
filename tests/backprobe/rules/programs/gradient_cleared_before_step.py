"""BP212 gradient-cleared-before-step."""

HEAD = """
import torch
from torch import nn

torch.manual_seed(0)
"""

PROGRAMS = {
    "a trainer clears in the method that steps": HEAD
    + """
class Trainer:
    def __init__(self):
        self.net = nn.Linear(3, 1)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=0.01)

    def update(self):
        self.optimizer.zero_grad()  # <- BP212
        self.optimizer.step()

    def fit(self, batches):
        for x in batches:
            self.net(x).pow(2).mean().backward()
            self.update()

Trainer().fit(torch.randn(4, 8, 3))
""",
    "of two optimizers one is cleared too early": HEAD
    + """
body, head = nn.Linear(3, 4), nn.Linear(4, 1)
slow, fast = torch.optim.SGD(body.parameters(), lr=0.01), torch.optim.SGD(head.parameters(), lr=0.1)
for x in torch.randn(4, 8, 3):
    fast.zero_grad()
    head(body(x).tanh()).pow(2).mean().backward()
    slow.zero_grad()  # <- BP212
    slow.step()
    fast.step()
""",
    "a helper clears the model in place": HEAD
    + """
def finish(net, optimizer):
    net.zero_grad(set_to_none=False)  # <- BP212
    optimizer.step()

net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(4, 8, 3):
    net(x).pow(2).mean().backward()
    finish(net, optimizer)
""",
    "right: a step that wraps the step and the clear of another optimizer": HEAD
    + """
class Sharp(torch.optim.Optimizer):
    def __init__(self, params, base, rho=0.05, **given):
        super().__init__(params, dict(rho=rho, **given))
        self.base = base(self.param_groups, **given)
        self.param_groups = self.base.param_groups

    @torch.no_grad()
    def climb(self):
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["offset"] = p.grad * group["rho"]
                p.add_(self.state[p]["offset"])
        self.zero_grad()

    @torch.no_grad()
    def descend(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.sub_(self.state[p].pop("offset"))
        self.base.step()
        self.zero_grad()

    def step(self, closure):
        closure = torch.enable_grad()(closure)
        loss = closure()
        self.climb()
        closure()
        self.descend()
        return loss

net = nn.Linear(3, 1)
optimizer = Sharp(net.parameters(), torch.optim.SGD, lr=0.1)
for x in torch.randn(4, 8, 3):
    def closure():
        loss = (net(x) - 1).pow(2).mean()
        loss.backward()
        return loss

    optimizer.step(closure)
""",
    "right: a wrapper whose step clears when the inner one is done": HEAD
    + """
class Looking(torch.optim.Optimizer):
    def __init__(self, base):
        super().__init__([p for group in base.param_groups for p in group["params"]], {})
        self.base = base

    def step(self):
        self.base.step()
        self.base.zero_grad()

net = nn.Linear(3, 1)
optimizer = Looking(torch.optim.SGD(net.parameters(), lr=0.1))
for x in torch.randn(4, 8, 3):
    net(x).pow(2).mean().backward()
    optimizer.step()
""",
    "an optimizer of the wrong parameters is told as that, not as a clear too early": HEAD
    + """
class Model:
    def __init__(self):
        self.moves, self.gain = nn.Linear(3, 3), nn.Linear(3, 1)
        self.moves_opt = torch.optim.SGD(self.moves.parameters(), lr=0.1)
        self.gain_opt = torch.optim.SGD(self.moves.parameters(), lr=0.1)  # <- BP701

    def update(self, x):
        moves_loss, gain_loss = (self.moves(x) - x).pow(2).mean(), (self.gain(x) - 1).pow(2).mean()
        self.moves_opt.zero_grad()
        moves_loss.backward()
        self.moves_opt.step()
        self.gain_opt.zero_grad()
        gain_loss.backward()
        self.gain_opt.step()

model = Model()
for x in torch.randn(5, 8, 3):
    model.update(x)
""",
    "right: cleared in place after each step, in a run of which not every step is recorded": HEAD
    + """
import itertools

def stream(count):
    for index in range(count):
        yield torch.randn(6 + index % 5, 12)

def grouped(items, size):
    iterator = iter(items)
    while group := list(itertools.islice(iterator, size)):
        yield group

class Frames(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.out = nn.GRU(12, 8), nn.Linear(8, 1)

    def forward(self, x):
        return self.out(self.rnn(x)[0])

def update(net, optimizer, group):
    for x in group:
        (net(x).pow(2).mean() / len(group)).backward()
    norm = nn.utils.clip_grad_norm_(net.parameters(), 2.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
    return norm.item()

net = Frames()
optimizer = torch.optim.SGD(net.parameters(), lr=0.3, momentum=0.8)
for epoch in range(6):
    for group in grouped(stream(22), 4):
        norm = update(net, optimizer, group)
    print(epoch, norm)
""",
}
