"""BP269 loss-saturated."""

PROGRAMS = {
    "each error is cut at a ceiling that all of them pass": """
import torch
from torch import nn

class Robust(nn.Module):
    def __init__(self, ceiling):
        super().__init__()
        self.ceiling = ceiling

    def forward(self, guess, wanted):
        return torch.clamp((guess - wanted).abs(), max=self.ceiling).mean()  # <- BP269

net, criterion = nn.Linear(4, 1), Robust(2.0)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(5):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    criterion(net(x), torch.full((8, 1), 50.0)).backward()
    optimizer.step()
""",
    "the smaller of the loss and a constant": """
import torch
from torch import nn

net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
most = torch.tensor(3.0)
for _ in range(5):
    x = torch.randn(8, 4)
    loss = torch.min((net(x) - 20).pow(2).mean(), most)  # <- BP269
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "a margin that is kept": """
import torch
from torch import nn

net = nn.Linear(4, 1)
nn.init.constant_(net.bias, 30.0)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
for _ in range(5):
    optimizer.zero_grad()
    (1 - net(torch.randn(8, 4))).clamp(min=0).mean().backward()
    optimizer.step()
""",
    "outliers are cut, the others train": """
import torch
from torch import nn

net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
for _ in range(5):
    x = torch.randn(8, 4)
    y = torch.zeros(8, 1)
    y[0] = 1000.0
    optimizer.zero_grad()
    (net(x) - y).pow(2).clamp(max=50.0).mean().backward()
    optimizer.step()
""",
    "the first batches lie above the ceiling": """
import torch
from torch import nn

net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
for turn in range(6):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    (net(x) - (100 if turn < 3 else 1)).pow(2).clamp(max=50.0).mean().backward()
    optimizer.step()
""",
}
