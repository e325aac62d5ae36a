"""BP753 kept-value-shares-memory."""

PROGRAMS = {
    "old weights without clone to measure change": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
for x in torch.randn(6, 8, 4):
    before = net.weight.detach()  # <- BP753
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
    print((net.weight - before).norm().item())
""",
    "best weights by reference of parameters": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
best, best_loss = None, float("inf")
for x in torch.randn(6, 8, 4):
    optimizer.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    if loss.item() < best_loss:
        best_loss = loss.item()
        best = [p.data for p in net.parameters()]  # <- BP753
with torch.no_grad():
    for p, b in zip(net.parameters(), best):
        p.copy_(b)
""",
    "start of a proximal term without clone": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
anchor = {name: p.data for name, p in net.named_parameters()}  # <- BP753
for x in torch.randn(4, 8, 4):
    loss = net(x).pow(2).mean()
    for name, p in net.named_parameters():
        loss = loss + 0.1 * (p - anchor[name]).pow(2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "distance to a list of parameters": """
import torch
from torch import nn

torch.manual_seed(0)
class Watch:
    def __init__(self, model):
        self.model = model
        self.start = [p.detach() for p in model.parameters()]  # <- BP753

    def moved(self):
        return sum((p - s).norm().item() for p, s in zip(self.model.parameters(), self.start))

net = nn.Linear(4, 1)
watch = Watch(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(4, 8, 4):
    loss = net(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(watch.moved())
""",
    "clone of weights before": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
for x in torch.randn(6, 8, 4):
    before = net.weight.detach().clone()
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
    print((net.weight - before).norm().item())
""",
    "proximal term with clones; copies of two models": """
import torch
from torch import nn

torch.manual_seed(0)
net, other = nn.Linear(4, 1), nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
anchor = {name: p.detach().clone() for name, p in net.named_parameters()}
view = net.weight.data
for x in torch.randn(4, 8, 4):
    loss = net(x).pow(2).mean()
    for name, p in net.named_parameters():
        loss = loss + 0.1 * (p - anchor[name]).pow(2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        view.clamp_(-1, 1)
        other.weight.copy_(net.weight.data)
        print((net.weight - net.weight.detach()).sum().item())
""",
}
