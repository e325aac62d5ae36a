"""BP708 optimizer-rebuilt-each-step."""

_HEAD = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
x, y = torch.randn(24, 4), torch.randn(24, 1)
loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
"""

_ROUNDS = (
    _HEAD
    + """
class Learner:
    def __init__(self, net, turns=3):
        self.net, self.turns = net, turns
        {once}

    def start(self):
        {start}

    def update(self, a, b):
        {build}
        for _ in range(self.turns):
            loss = nn.functional.mse_loss(self.net(a), b)
            {opt}.zero_grad()
            loss.backward()
            {opt}.step()

learner = Learner(net)
for turn in range({rounds}):
    a = torch.randn(16, 4)
    learner.update(a, a.sum(1, keepdim=True))
    {after}
"""
)
_ADAM = "torch.optim.Adam(self.net.parameters(), lr=0.01)"


def _rounds(
    *,
    build: str = "pass",
    once: str = "pass",
    start: str = "pass",
    opt: str = "self.opt",
    rounds: int = 7,
    after: str = "",
) -> str:
    return _ROUNDS.format(build=build, once=once, start=start, opt=opt, rounds=rounds, after=after)


PROGRAMS = {
    "made in a method that updates a few times": _rounds(build=f"self.opt = {_ADAM}  # <- BP708"),
    "made for itself in a method that updates a few times": _rounds(build=f"opt = {_ADAM}  # <- BP708", opt="opt"),
    "made in a helper that the update calls": _rounds(start=f"self.opt = {_ADAM}", build="self.start()  # <- BP708"),
    "made once for all updates": _rounds(once=f"self.opt = {_ADAM}"),
    "made once by a helper": _rounds(start=f"self.opt = {_ADAM}", once="self.start()"),
    "a few updates": _rounds(build=f"self.opt = {_ADAM}", rounds=3),
    "updates without a state": _rounds(build="self.opt = torch.optim.SGD(self.net.parameters(), lr=0.01)"),
    "each from the first weights": _rounds(
        build=f"self.opt = {_ADAM}", after="for p in net.parameters():\n        nn.init.normal_(p, std=0.1)"
    ),
    "made by a helper at the top of each epoch": _HEAD
    + """
def optimizer_of(net, lr):
    decay = [p for p in net.parameters() if p.ndim > 1]
    return torch.optim.AdamW([{"params": decay}, {"params": [p for p in net.parameters() if p.ndim < 2]}], lr=lr)

for epoch in range(5):
    opt = optimizer_of(net, 1e-2)  # <- BP708
    for a, b in loader:
        opt.zero_grad()
        nn.functional.mse_loss(net(a), b).backward()
        opt.step()
""",
    "made at the top of each epoch": _HEAD
    + """
for epoch in range(5):
    opt = torch.optim.AdamW(net.parameters(), lr=1e-2 * 0.9**epoch)  # <- BP708
    for a, b in loader:
        opt.zero_grad()
        nn.functional.mse_loss(net(a), b).backward()
        opt.step()
""",
    "made in a method that trains one epoch": _HEAD
    + """
class Trainer:
    def __init__(self, net):
        self.net = net

    def train_epoch(self, loader):
        opt = torch.optim.SGD(self.net.parameters(), lr=0.05, momentum=0.9)  # <- BP708
        for a, b in loader:
            self.batch(opt, a, b)

    def batch(self, opt, a, b):
        opt.zero_grad()
        nn.functional.mse_loss(self.net(a), b).backward()
        opt.step()

trainer = Trainer(net)
for turn in range(4):
    trainer.train_epoch(loader)
""",
    "a rate from a list, batches by index": _HEAD
    + """
for lr in (1e-2, 5e-3, 2e-3, 1e-3):
    opt = torch.optim.RMSprop(net.parameters(), lr=lr)  # <- BP708
    for i in range(0, len(x), 6):
        opt.zero_grad()
        nn.functional.mse_loss(net(x[i:i + 6]), y[i:i + 6]).backward()
        opt.step()
    print(lr)
""",
    "phases of a number of steps": _HEAD
    + """
for lr in (1e-2, 1e-3, 1e-4):
    opt = torch.optim.Adam(net.parameters(), lr=lr)
    for step in range(4):
        opt.zero_grad()
        nn.functional.mse_loss(net(x), y).backward()
        opt.step()
""",
    "two phases": _HEAD
    + """
def fit(net, lr, loader):
    opt = torch.optim.Adam(net.parameters(), lr=lr)
    for a, b in loader:
        opt.zero_grad()
        nn.functional.mse_loss(net(a), b).backward()
        opt.step()

fit(net, 1e-2, loader)
fit(net, 1e-3, loader)
""",
    "folds begin with the first weights": _HEAD
    + """
first = {key: value.clone() for key, value in net.state_dict().items()}
for fold in range(4):
    net.load_state_dict(first)
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    for a, b in loader:
        opt.zero_grad()
        nn.functional.mse_loss(net(a), b).backward()
        opt.step()
""",
    "a fresh model in each turn": _HEAD
    + """
for seed in range(4):
    torch.manual_seed(seed)
    net = nn.Linear(4, 1)
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    for a, b in loader:
        opt.zero_grad()
        nn.functional.mse_loss(net(a), b).backward()
        opt.step()
""",
    "tasks one after the other": _HEAD
    + """
tasks = [(torch.randn(3, 6, 4), torch.randn(3, 6, 1)) for _ in range(4)]
for task in range(4):
    xs, ys = tasks[task]
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    for a, b in zip(xs, ys):
        opt.zero_grad()
        nn.functional.mse_loss(net(a), b).backward()
        opt.step()
""",
    "the state is handed on": _HEAD
    + """
state = None
for epoch in range(4):
    opt = torch.optim.Adam(net.parameters(), lr=1e-2 / (1 + epoch))
    if state is not None:
        opt.load_state_dict(state)
    for a, b in loader:
        opt.zero_grad()
        nn.functional.mse_loss(net(a), b).backward()
        opt.step()
    state = opt.state_dict()
""",
}
