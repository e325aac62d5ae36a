"""BP304 graph-retained-accumulator."""

PROGRAMS = {
    "an attribute of a trainer": """
import torch
from torch import nn

class Fit:
    def __init__(self):
        self.model = nn.Linear(3, 1)
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.total = 0.0

    def epoch(self, data):
        for x in data:
            loss = self.model(x).pow(2).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.total += loss / len(data)  # <- BP304
        return self.total

print(float(Fit().epoch(torch.ones(5, 4, 3))))
""",
    "an average of weights": """
import torch
net = torch.nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
average = net.weight.detach().clone()
for x in torch.ones(4, 5, 3):
    opt.zero_grad()
    net(x).pow(2).mean().backward()
    opt.step()
    average = 0.9 * average + 0.1 * net.weight  # <- BP304
print(average)
""",
    "two turns are no pattern": """
import torch
net = torch.nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
running = 0.0
for x in torch.ones(2, 5, 3):
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    running += loss
print(running)
""",
    "a penalty summed over the parameters of one step": """
import torch
net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.ones(4, 5, 3):
    penalty = 0.0
    for p in net.parameters():
        penalty = penalty + p.pow(2).sum()
    opt.zero_grad()
    (net(x).pow(2).mean() + 0.1 * penalty).backward()
    opt.step()
""",
    "a list that is made one tensor at the end of a forward pass, under one name": """
import torch
cell, out = torch.nn.RNNCell(1, 4), torch.nn.Linear(4, 1)
opt = torch.optim.LBFGS([*cell.parameters(), *out.parameters()], lr=0.1)


def forward(rows):
    outputs = []
    h = torch.zeros(len(rows), 4)
    for one in rows.split(1, dim=1):
        h = cell(one, h)
        outputs += [out(h)]
    outputs = torch.cat(outputs, dim=1)
    return outputs


def closure():
    opt.zero_grad()
    loss = forward(rows).pow(2).mean()
    loss.backward()
    return loss


rows = torch.randn(3, 60)
for _ in range(2):
    opt.step(closure)
""",
    "a list of averages": """
import torch
net = torch.nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
averages = [p.clone() for p in net.parameters()]
for x in torch.ones(4, 5, 3):
    opt.zero_grad()
    net(x).pow(2).mean().backward()
    opt.step()
    averages = [0.9 * a + 0.1 * p for a, p in zip(averages, net.parameters())]  # <- BP304
print(len(averages))
""",
    "a list of averages without a history": """
import torch
net = torch.nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
averages = [p.detach().clone() for p in net.parameters()]
for x in torch.ones(4, 5, 3):
    opt.zero_grad()
    net(x).pow(2).mean().backward()
    opt.step()
    averages = [0.9 * a + 0.1 * p.detach() for a, p in zip(averages, net.parameters())]
print(len(averages))
""",
}
