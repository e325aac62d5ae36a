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
    "slices are noised by a helper": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 5))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
data = torch.randn(24, 5)
def noisy(batch, sigma):
    batch.add_(torch.randn_like(batch), alpha=sigma)  # <- BP469
    return batch

for epoch in range(3):
    for i in range(0, 24, 8):
        optimizer.zero_grad()
        clean = data[i : i + 8].clone()
        nn.functional.mse_loss(net(noisy(data[i : i + 8], 0.2)), clean).backward()
        optimizer.step()
""",
    "slices are scaled with the same numbers in each epoch": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 5))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
data = torch.randn(24, 5)
mean, spread = data.mean(0), data.std(0)
for epoch in range(3):
    for start in range(0, 24, 6):
        x = data.narrow(0, start, 6)
        x -= mean  # <- BP469
        x /= spread
        loss = (net(x) - x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
    "parts of a tensor, split once, with noise by name": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 5))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
data = torch.randn(24, 5)
parts = data.split(8)
for epoch in range(3):
    for k in range(len(parts)):
        x = parts[k]
        noise = 0.1 * torch.randn(8, 5)
        x += noise  # <- BP469
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()
""",
    "a copy of each slice": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 5))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
data = torch.randn(24, 5)
for epoch in range(3):
    for i in range(0, 24, 8):
        x = data[i : i + 8].clone()
        x += 0.1 * torch.randn_like(x)
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()
""",
    "noise that is taken away again": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 5))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
data = torch.randn(24, 5)
for epoch in range(3):
    for i in range(0, 24, 8):
        x = data[i : i + 8]
        noise = 0.1 * torch.randn_like(x)
        x += noise
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()
        x -= noise
""",
    "states that a network moves on": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 5))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
data = torch.randn(24, 5)
for turn in range(4):
    for i in range(0, 24, 8):
        state = data[i : i + 8]
        with torch.no_grad():
            state += 0.1 * net(state)
        optimizer.zero_grad()
        net(state).pow(2).mean().backward()
        optimizer.step()
""",
    "a permuted copy is made in each epoch": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 5))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
data = torch.randn(24, 5)
for epoch in range(3):
    shuffled = data[torch.randperm(24)]
    for i in range(0, 24, 8):
        x = shuffled[i : i + 8]
        x += 0.1 * torch.randn_like(x)
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()
""",
    "a buffer that is filled anew for each batch": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 5))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
data = torch.randn(24, 5)
room = torch.empty(16, 5)
for turn in range(6):
    x = room[8 * (turn % 2) : 8 * (turn % 2) + 8]
    x.copy_(data[8 * (turn % 3) : 8 * (turn % 3) + 8])
    x += 0.1 * torch.randn_like(x)
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
""",
    "a transform erases by chance what a data set hands it": """
import random
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Erase:
    def __call__(self, picture):
        low = random.randint(0, 4)
        picture[low : low + 3] = 0.0  # <- BP469
        return picture

class Pictures(Dataset):
    def __init__(self, change):
        self.rows, self.labels, self.change = torch.rand(12, 8), torch.randint(0, 2, (12,)), change

    def __len__(self):
        return 12

    def __getitem__(self, index):
        picture = self.rows[index]
        return self.change(picture), self.labels[index]

net = nn.Linear(8, 2)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
loader = DataLoader(Pictures(Erase()), batch_size=4, shuffle=True)
for epoch in range(12):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
""",
    "tokens are masked where they are stored": """
import torch
from torch import nn

def corrupt(ids, rate):
    chosen = torch.rand(ids.shape) < rate
    ids.masked_fill_(chosen, 0)  # <- BP469
    return ids

net = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 9))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
corpus = torch.randint(1, 9, (16, 6))
for epoch in range(3):
    for rows in corpus.split(4):
        goal = rows.clone()
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(corrupt(rows, 0.2)).flatten(0, 1), goal.flatten()).backward()
        optimizer.step()
""",
    "what a helper returns is the stored slice with its noise": """
import torch
from torch import nn

class Points:
    def __init__(self):
        self.samples = torch.randn(24, 2)

    def __iter__(self):
        for start in range(0, 24, 8):
            yield self.samples[start : start + 8]

def disturbed(points, size):
    noise = torch.randn_like(points)
    return points.add_(size * noise), noise  # <- BP469

net = nn.Linear(3, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
points = Points()
for epoch in range(3):
    for clean in points:
        noisy, noise = disturbed(clean, 0.1)
        guess = net(torch.cat([noisy, noisy[:, :1]], 1))
        optimizer.zero_grad()
        nn.functional.mse_loss(guess, noise).backward()
        optimizer.step()
""",
    "gaps are written again with the same number": """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __init__(self):
        self.rows = torch.randn(12, 6).masked_fill(torch.rand(12, 6) < 0.2, float("nan"))

    def __len__(self):
        return 12

    def __getitem__(self, index):
        row = self.rows[index]
        row[row.isnan()] = 0.0
        row.clamp_(-2, 2)
        return row

net, data = nn.Linear(6, 1), Rows()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(4):
    for x in DataLoader(data, batch_size=4):
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()
""",
    "a data set counts how often it was asked": """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Counted(Dataset):
    def __init__(self):
        self.rows, self.asked = torch.randn(12, 6), torch.zeros(12, 1)

    def __len__(self):
        return 12

    def __getitem__(self, index):
        row, asked = self.rows[index], self.asked[index]
        asked += 1
        return row

net, data = nn.Linear(6, 1), Counted()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    for x in DataLoader(data, batch_size=4):
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()
""",
    "a room of a data set is filled anew before it is erased": """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Copied(Dataset):
    def __init__(self):
        self.rows, self.room = torch.randn(12, 6), torch.empty(12, 6)

    def __len__(self):
        return 12

    def __getitem__(self, index):
        row = self.room[index]
        row.copy_(self.rows[index])
        row[torch.rand(6) < 0.3] = 0.0
        return row

net, data = nn.Linear(6, 1), Copied()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(4):
    for x in DataLoader(data, batch_size=4):
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()
""",
    "a place that is drawn gets what a function of the program counts": """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

seen = [0.0]

def newest():
    seen[0] += 1.0
    return seen[0]

class Kept(Dataset):
    def __init__(self):
        self.rows = torch.randn(12, 6)

    def __len__(self):
        return 12

    def __getitem__(self, index):
        row = self.rows[index]
        row[torch.rand(6) < 0.3] = newest()
        return row

net, data = nn.Linear(6, 1), Kept()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for epoch in range(3):
    for x in DataLoader(data, batch_size=4):
        optimizer.zero_grad()
        net(x / 50).pow(2).mean().backward()
        optimizer.step()
""",
    "the same places are erased each time": """
import torch
from torch import nn

net = nn.Linear(5, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
data = torch.randn(24, 5)
hidden = torch.rand(8, 5) < 0.3
for epoch in range(3):
    for x in data.split(8):
        x[hidden] = 0.0
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()
""",
    "other places are erased each time": """
import torch
from torch import nn

net = nn.Linear(5, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
data = torch.randn(24, 5)
for epoch in range(3):
    for x in data.split(8):
        hidden = torch.rand(8, 5) < 0.3
        x[hidden] = 0.0  # <- BP469
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()
""",
    "what a helper changes has a name of its own before it is trained on": """
import torch
from torch import nn

def corrupt(x):
    noise = torch.randn_like(x)
    x += 0.3 * noise  # <- BP469
    return x

torch.manual_seed(0)
net, data = nn.Linear(5, 5), torch.randn(40, 5)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for epoch in range(8):
    for i in range(0, 40, 8):
        clean = data[i : i + 8]
        goal = clean.clone()
        noisy = corrupt(clean)
        out = net(noisy)
        loss = nn.functional.mse_loss(out, goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
    "what a helper changes another one changes back": """
import torch
from torch import nn

def corrupt(x, noise):
    x += noise
    return x

def restore(x, noise):
    x -= noise
    return x

torch.manual_seed(0)
net, data = nn.Linear(5, 5), torch.randn(40, 5)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for epoch in range(8):
    for i in range(0, 40, 8):
        clean = data[i : i + 8]
        goal = clean.clone()
        noise = 0.3 * torch.randn_like(clean)
        noisy = corrupt(clean, noise)
        out = net(noisy)
        loss = nn.functional.mse_loss(out, goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        again = restore(clean, noise)
""",
}
