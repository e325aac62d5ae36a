"""Programs for BP759: groups of an optimizer in which nothing requires grad."""

_FIT = """
import torch

torch.manual_seed(0)
t = torch.linspace(0, 1, 20)
seen = 2 * torch.exp(-3 * t) + 0.1


def curve(height, rate, floor):
    return height * torch.exp(-rate * t) + floor


{made}
optimizer = torch.optim.Adam({given}, lr=0.05)
for step in range(6):
    optimizer.zero_grad()
    loss = (curve(height, rate, floor) - seen).pow(2).mean()
    loss.backward(){after}
    optimizer.step()
"""


def _fit(
    *, given: str = "[height, rate, floor]", mark: str = "", after: str = "", rate: str = "torch.tensor(1.0)"
) -> str:
    made = f"""height = torch.ones(1, requires_grad=True)
rate = {rate}{mark}
floor = torch.zeros((), requires_grad=True)"""
    return _FIT.format(made=made, given=given, after="".join(f"\n    {one}" for one in after.split("; ") if one))


PROGRAMS = {
    "a plain tensor among those that are fitted": _fit(mark="  # <- BP759"),
    "a plain tensor that was drawn": _fit(rate="torch.rand(20)", mark="  # <- BP759"),
    "a plain tensor in a group of its own": _fit(
        given='[{"params": [height, floor]}, {"params": [rate], "lr": 0.1}]', mark="  # <- BP759"
    ),
    "right: a plain tensor that is thawed later": _fit(after="rate.requires_grad_(step > 1)"),
    "right: a tensor whose gradient is written by hand": _fit(after="rate.grad = torch.ones(())"),
    "right: all are leaves that require grad": _fit(rate="torch.tensor(1.0, requires_grad=True)"),
    "right: a plain tensor that is no unknown": _fit(given="[height, floor]"),
    "right: a parameter that is kept as it is": _fit(rate="torch.nn.Parameter(torch.tensor(1.0), requires_grad=False)"),
    "the frozen backbone has a rate of its own": """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
        self.head = nn.Linear(8, 1)
        for parameter in self.backbone.parameters():
            parameter.requires_grad = False

    def forward(self, x):
        return self.head(self.backbone(x))


net = Net()
groups = [{"params": net.backbone.parameters(), "lr": 1e-4}, {"params": net.head.parameters()}]
optimizer = torch.optim.SGD(groups, lr=1e-2)  # <- BP759
for step in range(3):
    optimizer.zero_grad()
    net(torch.randn(4, 4)).pow(2).mean().backward()
    optimizer.step()
""",
    "right: a method that this run does not reach thaws it": """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 1)
        self.body.requires_grad_(False)

    def forward(self, x):
        return self.head(self.body(x))

    def wake(self):
        self.body.requires_grad_(True)


net = Net()
optimizer = torch.optim.SGD([{"params": net.body.parameters(), "lr": 1e-4}, {"params": net.head.parameters()}], lr=1e-2)
for step in range(30):
    optimizer.zero_grad()
    net(torch.randn(4, 4)).pow(2).mean().backward()
    optimizer.step()
    if step == 100:
        net.wake()
""",
    "right: one group of everything": """
import torch
from torch import nn

body, head = nn.Linear(4, 4), nn.Linear(4, 1)
body.requires_grad_(False)
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=1e-2)
for step in range(3):
    optimizer.zero_grad()
    head(body(torch.randn(4, 4))).pow(2).mean().backward()
    optimizer.step()
""",
    "right: decay by kind, with frozen ones among them": """
import torch
from torch import nn

body, head = nn.Linear(4, 4), nn.Linear(4, 1)
body.requires_grad_(False)
weights, biases = [body.weight, head.weight], [body.bias, head.bias]
optimizer = torch.optim.SGD([{"params": weights, "weight_decay": 0.1}, {"params": biases}], lr=1e-2)
for step in range(3):
    optimizer.zero_grad()
    head(body(torch.randn(4, 4))).pow(2).mean().backward()
    optimizer.step()
""",
}
