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

PROGRAMS = {
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
