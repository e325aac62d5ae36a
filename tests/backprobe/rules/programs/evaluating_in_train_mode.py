"""BP612 evaluating-in-train-mode."""

_HEAD = """
import torch
from torch import nn

net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

def train():
    optimizer.zero_grad()
    net(torch.randn(8, 6)).pow(2).mean().backward()
    optimizer.step()
"""

PROGRAMS = {
    "a function evaluates at the end": _HEAD
    + """
@torch.no_grad()
def test(data):
    out = net(data)  # <- BP612
    return out.argmax(1).float().mean().item()

for _ in range(3):
    train()
print(test(torch.randn(20, 6)))
""",
    "a model that is never trained": """
import torch
from torch import nn

net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
with torch.no_grad():
    print(net(torch.randn(8, 6)).mean())
""",
    "layers without a mode": """
import torch
from torch import nn

net = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.Linear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    net(torch.randn(8, 6)).pow(2).mean().backward()
    optimizer.step()
with torch.no_grad():
    print(net(torch.randn(8, 6)).mean())
""",
}
