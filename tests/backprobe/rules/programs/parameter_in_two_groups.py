"""BP767 parameter-in-two-groups."""

PROGRAMS = {
    "a backbone's rate and a head's, by a function": """
import torch
from torch import nn

class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone, self.head = nn.Linear(4, 8), nn.Linear(8, 2)

def build(model, rate):
    slow = {"params": list(model.backbone.parameters()), "lr": rate / 10}
    rest = {"params": list(model.parameters())}
    return torch.optim.AdamW([slow, rest], lr=rate)  # <- BP767

build(Detector(), 1e-3)
""",
    "a group is added later": """
import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
optimizer.add_param_group({"params": net[1].parameters(), "lr": 0.01})  # <- BP767
""",
    "a tied weight is listed once": """
import torch
from torch import nn

table, out = nn.Embedding(9, 4), nn.Linear(4, 9, bias=False)
out.weight = table.weight
net = nn.ModuleList([table, out])
optimizer = torch.optim.SGD([{"params": net.parameters()}, {"params": [torch.ones(1, requires_grad=True)]}], lr=0.1)
for ids in torch.randint(0, 9, (3, 5)):
    optimizer.zero_grad()
    nn.functional.cross_entropy(out(table(ids)), ids).backward()
    optimizer.step()
""",
    "a function returns the groups": """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))

def groups_of(net):
    return [
        {"params": net.parameters(), "lr": 0.01},
        {"params": net[1].parameters(), "weight_decay": 0.1},  # <- BP767
    ]

optimizer = torch.optim.AdamW(groups_of(net), lr=0.1)
for x in torch.randn(3, 8, 3):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
""",
    "a function returns groups that share nothing": """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))

def groups_of(net):
    return [
        {"params": net[0].parameters(), "lr": 0.01},
        {"params": net[1].parameters(), "weight_decay": 0.1},
    ]

optimizer = torch.optim.AdamW(groups_of(net), lr=0.1)
for x in torch.randn(3, 8, 3):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
""",
    "the groups that a function returns have a name": """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))

def groups_of(net):
    return [
        {"params": net.parameters(), "lr": 0.01},
        {"params": net[1].parameters(), "weight_decay": 0.1},  # <- BP767
    ]

groups = groups_of(net)
optimizer = torch.optim.AdamW(groups, lr=0.1)
""",
}
