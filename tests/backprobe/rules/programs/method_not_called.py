"""BP813 method-not-called."""

PROGRAMS = {
    "requires_grad_ without call": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
x = torch.randn(3, 4)
x.requires_grad_  # <- BP813
net(x).sum().backward()
print(x.grad + 1)
""",
    "scheduler step without parentheses": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
for epoch in range(3):
    for x in torch.randn(4, 8, 4):
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()
    scheduler.step  # <- BP813
""",
    "eval without parentheses": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    net.train()
    for x in torch.randn(4, 8, 4):
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()
    net.eval  # <- BP813
    with torch.no_grad():
        print(net(torch.randn(8, 4)).pow(2).mean().item())
""",
    "net.train without brackets": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    net.train  # <- BP813
    for x in torch.randn(4, 8, 4):
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        print(net(torch.randn(8, 4)).pow(2).mean().item())
""",
    "properties named alone": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 8, 4):
    optimizer.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward()
    net.weight.grad
    x.shape
    optimizer.step()
    loss.requires_grad
""",
}
