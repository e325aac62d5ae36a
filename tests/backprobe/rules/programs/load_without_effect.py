"""BP764 load-without-effect."""

PROGRAMS = {
    "keys of a wrapper": """
import torch
from torch import nn

def network():
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))

class Restore:
    def __init__(self, state):
        self.model = network()
        self.model.load_state_dict(state, strict=False)  # <- BP764
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def train(self):
        for x in torch.randn(3, 8, 4):
            self.optimizer.zero_grad()
            self.model(x).pow(2).mean().backward()
            self.optimizer.step()

saved = {f"module.{key}": value for key, value in network().state_dict().items()}
Restore(saved).train()
""",
    "the whole checkpoint instead of its state": """
import torch
from torch import nn

source, model = nn.Linear(4, 2), nn.Linear(4, 2)
checkpoint = {"epoch": 3, "state_dict": source.state_dict()}
report = model.load_state_dict(checkpoint, strict=False)  # <- BP764
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(3, 8, 4):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
""",
    "some keys are missing": """
import torch
from torch import nn

source = nn.Sequential(nn.Linear(4, 6), nn.ReLU())
model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))
model.load_state_dict(source.state_dict(), strict=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(3, 8, 4):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
""",
    "tensors are put in their place": """
import torch
from torch import nn

model = nn.Linear(4, 2)
model.load_state_dict({"weight": torch.ones(2, 4)}, strict=False, assign=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(3, 8, 4):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
""",
    "only buffers are loaded": """
import torch
from torch import nn

source, model = nn.BatchNorm1d(4), nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 1))
state = {f"0.{key}": value for key, value in source.state_dict().items() if "running" in key}
model.load_state_dict(state, strict=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(3, 8, 4):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
""",
    "the layers had names before the model had one": """
import torch
from torch import nn

def network():
    inner = nn.Linear(4, 6)
    outer = nn.Linear(6, 2)
    return nn.Sequential(inner, nn.ReLU(), outer)

saved = {f"net.{key}": value for key, value in network().state_dict().items()}
model = network()
model.load_state_dict(saved, strict=False)  # <- BP764
weights = model[2].parameters()
optimizer = torch.optim.SGD(weights, lr=0.1)
model[0].requires_grad_(False)
for x in torch.randn(3, 8, 4):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
""",
    "the layers had names before the model had one, and the keys are its own": """
import torch
from torch import nn

def network():
    inner = nn.Linear(4, 6)
    outer = nn.Linear(6, 2)
    return nn.Sequential(inner, nn.ReLU(), outer)

saved = {f"{key}": value for key, value in network().state_dict().items()}
model = network()
model.load_state_dict(saved, strict=False)
weights = model[2].parameters()
optimizer = torch.optim.SGD(weights, lr=0.1)
model[0].requires_grad_(False)
for x in torch.randn(3, 8, 4):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
""",
}
