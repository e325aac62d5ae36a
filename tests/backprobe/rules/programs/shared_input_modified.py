"""BP469 shared-input-modified."""

PROGRAMS = {
    "batches in a list are noised again in each epoch": """
import torch
from torch import nn

net = nn.Linear(5, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
batches = [(torch.randn(8, 5), torch.randn(8, 1)) for _ in range(3)]
for epoch in range(3):
    for x, y in batches:
        x += 0.1 * torch.randn(8, 5)  # <- BP469
        optimizer.zero_grad()
        (net(x) - y).pow(2).mean().backward()
        optimizer.step()
""",
    "scaled where an item is taken": """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Spectra(Dataset):
    def __init__(self):
        self.rows = torch.rand(12, 6)
        self.labels = torch.randint(0, 2, (12,))

    def __len__(self):
        return 12

    def __getitem__(self, index):
        row = self.rows[index]
        row -= row.mean()  # <- BP469
        row.mul_(0.5)
        return row, self.labels[index]

net = nn.Linear(6, 2)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
data = Spectra()
for epoch in range(2):
    for x, y in DataLoader(data, batch_size=4):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
""",
    "scaled once before training": """
import torch
from torch import nn

net = nn.Linear(5, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
batches = [torch.randn(8, 5) for _ in range(3)]
for x in batches:
    x.sub_(x.mean()).div_(x.std())
for epoch in range(3):
    for x in batches:
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()
""",
    "each batch is new": """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

net = nn.Linear(5, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    for (x,) in DataLoader(TensorDataset(torch.randn(12, 5)), batch_size=4):
        x.add_(0.1 * torch.randn_like(x)).clamp_(-1, 1)
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()
""",
    "a world that moves, and a memory that fills": """
import torch
from torch import nn

net = nn.Linear(2, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
places, memory = torch.zeros(4, 2), torch.zeros(6, 2)
walkers = [places[i] for i in range(4)]
for turn in range(6):
    for walker in walkers:
        with torch.no_grad():
            walker.add_(net(walker))
    memory[turn] = places.mean(0)
    optimizer.zero_grad()
    (net(memory[: turn + 1]) - 1).pow(2).mean().backward()
    optimizer.step()
""",
}
