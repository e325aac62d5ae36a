"""BP113 freeze-undone."""

PROGRAMS = {
    "a body is frozen in a method, and its owner thaws everything": """
import torch
from torch import nn

class Tuner(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 6), nn.Linear(6, 2)

    def freeze(self):
        self.body.requires_grad_(False)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))

def prepare(model):
    model.train().requires_grad_(True)  # <- BP113
    return torch.optim.AdamW(model.parameters(), lr=1e-3)

tuner = Tuner()
tuner.freeze()
optimizer = prepare(tuner)
for x in torch.randn(4, 8, 4):
    optimizer.zero_grad()
    tuner(x).pow(2).mean().backward()
    optimizer.step()
""",
    "all is frozen, then adapters are not": """
import torch
from torch import nn

model = nn.ModuleDict({"base": nn.Linear(4, 4), "adapter": nn.Linear(4, 4)})
for weight in model.parameters():
    weight.requires_grad = False
for name, weight in model.named_parameters():
    if name.startswith("adapter"):
        weight.requires_grad = True
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
for x in torch.randn(4, 8, 4):
    optimizer.zero_grad()
    (model["base"](x) + model["adapter"](x)).pow(2).mean().backward()
    optimizer.step()
""",
    "a phase without gradients lies between": """
import torch
from torch import nn

model = nn.Linear(4, 1)
model.requires_grad_(False)
start = model(torch.randn(8, 4)).mean()
print(start.item())
model.requires_grad_(True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(4, 8, 4):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
""",
    "a body is thawed for a second phase": """
import torch
from torch import nn

body, head = nn.Linear(4, 6), nn.Linear(6, 1)
body.requires_grad_(False)
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
for epoch in range(4):
    if epoch == 2:
        body.requires_grad_(True)
    for x in torch.randn(2, 8, 4):
        optimizer.zero_grad()
        head(body(x)).pow(2).mean().backward()
        optimizer.step()
""",
}
