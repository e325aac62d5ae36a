"""BP110 non-leaf-deepcopied."""

PROGRAMS = {
    "a cached activation of a model": """
import copy
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.hidden = None

    def forward(self, rows):
        self.hidden = self.layer(rows).relu()  # <- BP110
        return self.hidden.sum()

net = Net()
net(torch.ones(2, 3)).backward()
best = copy.deepcopy(net)
""",
    "an element that was set": """
import copy
import torch
weight = torch.ones(3, requires_grad=True)
state = {"step": 1}
state["mean"] = weight * 0.5 + 1  # <- BP110
best = copy.deepcopy(state)
""",
    "appended to a list": """
from copy import deepcopy
import torch
weight = torch.ones(3, requires_grad=True)
outputs = []
for scale in (1, 2):
    out = weight * scale
    outputs.append(out)  # <- BP110
best = deepcopy(outputs)
""",
    "another object holds a computed tensor too": """
import copy
import torch

class Holder:
    def __init__(self, value):
        self.value = value

weight = torch.ones(3, requires_grad=True)
result = {"out": weight * 2}  # <- BP110
other = Holder(weight * 3)
copy.deepcopy(result)
""",
    "given to the object as it is made": """
import copy
from dataclasses import dataclass
import torch

@dataclass
class Result:
    out: torch.Tensor

weight = torch.ones(3, requires_grad=True)
hidden = weight * 2
result = Result(out=hidden)  # <- BP110
copy.deepcopy(result)
""",
    "a library copies it": """
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, rows):
        self.out = rows * 2  # <- BP110
        return self.out

net = Net()
net(torch.ones(3, requires_grad=True))
averaged = torch.optim.swa_utils.AveragedModel(net)
""",
    "the tensor itself": """
import copy
import torch
weight = torch.ones(3, requires_grad=True)
shadow = weight * 0.9
backup = copy.deepcopy(shadow)  # <- BP110
""",
    "an object copies itself": """
import copy
import torch

class Runner:
    def __init__(self):
        self.weight = torch.ones(3, requires_grad=True)
        self.last = None

    def run(self):
        self.last = self.weight.exp()  # <- BP110
        return copy.deepcopy(self)

Runner().run()
""",
    "an attribute of an object": """
import copy
import torch

class Result:
    pass

weight = torch.ones(3, requires_grad=True)
result = Result()
result.out = weight * 2  # <- BP110
result.plain = torch.ones(2)
result.leaf = weight
copy.deepcopy(result)
""",
    "a comprehension": """
import copy
import torch
weight = torch.ones(3, requires_grad=True)
parts = [weight * scale for scale in (1, 2)]  # <- BP110
copy.deepcopy(parts)
""",
    "the program catches it": """
import copy
import torch
hidden = torch.ones(3, requires_grad=True) * 2
try:
    copy.deepcopy(hidden)
except RuntimeError as error:
    print(error)
""",
}
