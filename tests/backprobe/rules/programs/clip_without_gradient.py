"""BP722 clip-without-gradient."""

HEAD = """
import torch
from torch import nn
model, other = nn.Linear(3, 1), nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""

PROGRAMS = {
    "the wrong model": HEAD
    + """
for x in torch.randn(3, 8, 3):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    torch.nn.utils.clip_grad_norm_(other.parameters(), 0.5)  # <- BP722
    optimizer.step()
""",
    "gradients were set to zero": HEAD
    + """
for x in torch.randn(3, 8, 3):
    model(x).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # <- BP722
""",
    "once is no pattern": HEAD
    + """
nn.utils.clip_grad_norm_(model.parameters(), 1.0)
for x in torch.randn(3, 8, 3):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
""",
    "a filter that the optimizer has walked": """
import torch
from torch import nn
model = nn.Linear(3, 1)
trained = filter(lambda p: p.requires_grad, model.parameters())  # <- BP722
optimizer = torch.optim.SGD(trained, lr=0.1)
for x in torch.randn(3, 8, 3):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    nn.utils.clip_grad_norm_(trained, 1.0)
    optimizer.step()
""",
    "a generator in an attribute of a trainer": """
import torch
from torch import nn

class Trainer:
    def __init__(self, model):
        self.model = model
        self.weights = (p for p in model.parameters() if p.requires_grad)  # <- BP722
        self.optimizer = torch.optim.SGD(self.weights, lr=0.1)

    def step(self, x):
        self.optimizer.zero_grad()
        self.model(x).pow(2).mean().backward()
        nn.utils.clip_grad_norm_(self.weights, 1.0)
        self.optimizer.step()

trainer = Trainer(nn.Linear(3, 1))
for x in torch.randn(3, 8, 3):
    trainer.step(x)
""",
    "parameters that are handed to the training function": """
import torch
from torch import nn

def train(model, params, optimizer):
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        nn.utils.clip_grad_norm_(params, 1.0)
        optimizer.step()

model = nn.Linear(3, 1)
params = model.parameters()  # <- BP722
train(model, params, torch.optim.SGD(params, lr=0.1))
""",
    "a function of the program yields them": """
import torch
from torch import nn

def trainable(model):
    for p in model.parameters():
        if p.requires_grad:
            yield p

def main():
    model = nn.Linear(3, 1)
    params = trainable(model)  # <- BP722
    optimizer = torch.optim.SGD(params, lr=0.1)
    for x in torch.randn(3, 8, 3):
        model.zero_grad()
        model(x).pow(2).mean().backward()
        nn.utils.clip_grad_norm_(params, 1.0)
        optimizer.step()

main()
""",
    "an empty list is told where it is used": HEAD
    + """
chosen = [p for name, p in model.named_parameters() if name.startswith("head")]
for x in torch.randn(3, 8, 3):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    nn.utils.clip_grad_norm_(chosen, 1.0)  # <- BP722
    optimizer.step()
""",
    "a generator made anew in each turn": HEAD
    + """
for x in torch.randn(3, 8, 3):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    params = model.parameters()
    nn.utils.clip_grad_norm_(params, 1.0)
    optimizer.step()
""",
    "a name that is a list in the end": HEAD
    + """
params = model.parameters()
params = list(params)
for x in torch.randn(3, 8, 3):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    nn.utils.clip_grad_norm_(params, 1.0)
    optimizer.step()
""",
}
