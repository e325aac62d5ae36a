"""BP777 schedule-not-restored."""

PROGRAMS = {
    "a session whose loop over the parts leaves the schedule out": """
import io
import torch
from torch import nn

class Session:
    def __init__(self):
        self.model = nn.Linear(8, 2)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda s: 0.9**s)

    def run(self, steps):
        for _ in range(steps):
            x = torch.randn(20, 8)
            self.optimizer.zero_grad()
            nn.functional.cross_entropy(self.model(x), (x[:, 0] > 0).long()).backward()
            self.optimizer.step()
            self.scheduler.step()

    def load(self, file):
        state = torch.load(file)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])  # <- BP777

file, first = io.BytesIO(), Session()
first.run(4)
torch.save({"model": first.model.state_dict(), "optimizer": first.optimizer.state_dict()}, file)
file.seek(0)
second = Session()
second.load(file)
second.run(4)
""",
    "right: stepped forward to where it was": """
import copy
import torch
from torch import nn

def begin(model):
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return opt, torch.optim.lr_scheduler.StepLR(opt, step_size=2)

model = nn.Linear(3, 1)
opt, sched = begin(model)
for x in torch.randn(4, 8, 3):
    opt.zero_grad()
    model(x).pow(2).mean().backward()
    opt.step()
    sched.step()
state = copy.deepcopy(opt.state_dict())
opt, sched = begin(model)
opt.load_state_dict(state)
for _ in range(4):
    sched.step()
for x in torch.randn(4, 8, 3):
    opt.zero_grad()
    model(x).pow(2).mean().backward()
    opt.step()
    sched.step()
""",
    "right: the first phase had no schedule": """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 1)
X = torch.randn(6, 16, 3)


def run(optimizer, schedule=None):
    for x in X:
        optimizer.zero_grad()
        (model(x) - x.sum(1, keepdim=True)).pow(2).mean().backward()
        optimizer.step()
        if schedule is not None:
            schedule.step()


pretrain = torch.optim.Adam(model.parameters(), lr=1e-3)
run(pretrain)
moments = pretrain.state_dict()
finetune = torch.optim.Adam(model.parameters(), lr=1e-3)
finetune.load_state_dict(moments)
run(finetune, torch.optim.lr_scheduler.CosineAnnealingLR(finetune, T_max=6))
""",
    "right: the count is written to the schedule": """
import copy

import torch
from torch import nn

torch.manual_seed(0)


def begin():
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return model, optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda e: 0.9**e)


def train(model, optimizer, schedule):
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        schedule.step()


model, optimizer, schedule = begin()
train(model, optimizer, schedule)
kept = copy.deepcopy({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": schedule.last_epoch})
model, optimizer, schedule = begin()
model.load_state_dict(kept["model"])
optimizer.load_state_dict(kept["optimizer"])
schedule.last_epoch = kept["epoch"]
train(model, optimizer, schedule)
""",
    "right: its function counts from the epoch that was reached": """
import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 1)


def train(start, state=None):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if state is not None:
        optimizer.load_state_dict(state)
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"] = 0.1
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda e: 0.9 ** (start + e))
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        schedule.step()
    return copy.deepcopy(optimizer.state_dict())


state = train(0)
train(3, state)
""",
}
