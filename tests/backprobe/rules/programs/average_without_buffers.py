"""BP755 average-without-buffers."""

_HEAD = """
import copy
import torch
from torch import nn

def net():
    return nn.Sequential(nn.Conv1d(2, 4, 3), nn.BatchNorm1d(4), nn.ReLU(), nn.Flatten(), nn.Linear(24, 2))

torch.manual_seed(0)
model = net()
"""

PROGRAMS = {
    "a class that keeps the average by `.data`": _HEAD
    + """
class Average:
    def __init__(self, model, keep):
        self.keep = keep
        self.shadow = copy.deepcopy(model)
        self.shadow.eval()

    def follow(self, model):
        online = dict(model.named_parameters())
        for name, value in self.shadow.named_parameters():  # <- BP755
            value.data.mul_(self.keep).add_(online[name].data, alpha=1 - self.keep)

average = Average(model, 0.8)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for x in torch.randn(6, 8, 2, 8):
    loss = model(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average.follow(model)
with torch.no_grad():
    print(average.shadow(torch.randn(3, 2, 8)).mean())
""",
    "a target network with soft updates, asked at every step": _HEAD
    + """
target = net()
target.load_state_dict(model.state_dict())
target.eval()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for x in torch.randn(6, 8, 2, 8):
    with torch.no_grad():
        wanted = 1 + 0.9 * target(x)
    optimizer.zero_grad()
    nn.functional.smooth_l1_loss(model(x), wanted).backward()
    optimizer.step()
    with torch.no_grad():
        for old, new in zip(target.parameters(), model.parameters()):  # <- BP755
            old.copy_(0.95 * old + 0.05 * new)
""",
    "all parameters in one call": _HEAD
    + """
slow = copy.deepcopy(model).requires_grad_(False).eval()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for x in torch.randn(6, 8, 2, 8):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
    with torch.no_grad():
        torch._foreach_lerp_(list(slow.parameters()), list(model.parameters()), 0.1)  # <- BP755
print(slow(torch.randn(3, 2, 8)).mean())
""",
    "the state dict is averaged": _HEAD
    + """
slow = copy.deepcopy(model).eval()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for x in torch.randn(6, 8, 2, 8):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
    with torch.no_grad():
        fresh = model.state_dict()
        for key, value in slow.state_dict().items():
            value.lerp_(fresh[key], 0.1) if value.is_floating_point() else value.copy_(fresh[key])
with torch.no_grad():
    print(slow(torch.randn(3, 2, 8)).mean())
""",
    "statistics are made anew before it is asked": _HEAD
    + """
slow = copy.deepcopy(model).eval()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
data = torch.randn(6, 8, 2, 8)
for x in data:
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
    with torch.no_grad():
        for old, new in zip(slow.parameters(), model.parameters()):
            old.lerp_(new, 0.1)
torch.optim.swa_utils.update_bn(data, slow)
slow.eval()
with torch.no_grad():
    print(slow(torch.randn(3, 2, 8)).mean())
""",
    "buffers are copied once, before it is asked": _HEAD
    + """
slow = copy.deepcopy(model).eval()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for x in torch.randn(6, 8, 2, 8):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
    with torch.no_grad():
        for old, new in zip(slow.parameters(), model.parameters()):
            old.lerp_(new, 0.1)
with torch.no_grad():
    for old, new in zip(slow.buffers(), model.buffers()):
        old.copy_(new)
    print(slow(torch.randn(3, 2, 8)).mean())
""",
    "layer norms have no statistics": """
import copy
import torch
from torch import nn

model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 1))
slow = copy.deepcopy(model).eval()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for x in torch.randn(6, 8, 3):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
    with torch.no_grad():
        for old, new in zip(slow.parameters(), model.parameters()):
            old.lerp_(new, 0.1)
with torch.no_grad():
    print(slow(torch.randn(3, 3)).mean())
""",
    "the average is never asked, it is swapped in with its statistics": _HEAD
    + """
slow = copy.deepcopy(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for x in torch.randn(6, 8, 2, 8):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
    with torch.no_grad():
        for old, new in zip(slow.parameters(), model.parameters()):
            old.lerp_(new, 0.1)
slow.load_state_dict(dict(slow.state_dict()) | dict(model.named_buffers()))
slow.eval()
with torch.no_grad():
    print(slow(torch.randn(3, 2, 8)).mean())
""",
}
