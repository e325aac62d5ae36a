"""BP730 scaled-gradient-stepped."""

HEAD = """
import torch
from torch import nn
model, other = nn.Linear(3, 1), nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
"""

PROGRAMS = {
    "in a function that binds what the step gives": HEAD
    + """
def train(x):
    optimizer.zero_grad()
    scaler.scale(model(x).pow(2).mean()).backward()
    result = optimizer.step()  # <- BP730
    return result

for x in torch.randn(3, 8, 3):
    train(x)
""",
    "once is no pattern": HEAD
    + """
scaler.scale(model(torch.randn(8, 3)).pow(2).mean()).backward()
optimizer.step()
""",
    "only one of two optimizers goes through the scaler": HEAD
    + """
second = torch.optim.SGD(other.parameters(), lr=0.1)
for x in torch.randn(3, 8, 3):
    optimizer.zero_grad()
    second.zero_grad()
    scaler.scale((model(x) + other(x)).pow(2).mean()).backward()
    scaler.step(optimizer)
    second.step()  # <- BP730
    scaler.update()
""",
    "a scale of 1": HEAD.replace("256.0", "1.0")
    + """
for x in torch.randn(3, 8, 3):
    optimizer.zero_grad()
    scaler.scale(model(x).pow(2).mean()).backward()
    optimizer.step()
""",
}
