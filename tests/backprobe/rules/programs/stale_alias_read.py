"""BP412 stale-alias-read."""

PROGRAMS = {
    "labels are the ids that a collator masks": """
import torch
from torch import nn

class Collator:
    def __call__(self, rows):
        ids = torch.stack(rows)
        labels = ids
        picked = torch.rand(ids.shape) < 0.3
        ids[picked] = 0  # <- BP412
        return ids, labels, picked

torch.manual_seed(0)
loader = torch.utils.data.DataLoader(torch.randint(1, 9, (32, 6)), batch_size=8, collate_fn=Collator())
net = nn.Sequential(nn.Embedding(9, 8), nn.Linear(8, 9))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for ids, labels, picked in loader:
    loss = nn.functional.cross_entropy(net(ids)[picked], labels[picked])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "noise is added to the target as well, in the training loop": """
import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for batch in torch.randn(4, 8, 4).unbind():
    noisy = batch
    noisy += 0.3 * torch.randn(8, 4)  # <- BP412
    restored = net(noisy)
    loss = nn.functional.mse_loss(restored, batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "a helper masks what it was given, and gives both back": """
import torch
from torch import nn

def corrupt(x, share):
    masked = x
    masked.masked_fill_(torch.rand_like(x) < share, 0.0)  # <- BP412
    return {"input": masked, "target": x}

net = nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

def step(x):
    pair = corrupt(x, 0.5)
    loss = (net(pair["input"]) - pair["target"]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

for _ in range(4):
    step(torch.randn(8, 4))
""",
    "an observation before and after a step of a world, in a trainer": """
import torch
from torch import nn

class Trainer:
    def __init__(self):
        self.model = nn.Linear(3, 3)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def observe(self, steps):
        state = torch.randn(3)
        for _ in range(steps):
            before = state
            state += 0.1 * torch.randn(3)  # <- BP412
            self.learn(before, state)

    def learn(self, before, after):
        loss = (self.model(before) - after).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

Trainer().observe(4)
""",
    "right: the labels are copied before the ids are masked": """
import torch
from torch import nn

def collate(rows):
    ids = torch.stack(rows)
    labels = ids.clone()
    picked = torch.rand(ids.shape) < 0.3
    ids[picked] = 0
    return ids, labels, picked

loader = torch.utils.data.DataLoader(torch.randint(1, 9, (32, 6)), batch_size=8, collate_fn=collate)
net = nn.Sequential(nn.Embedding(9, 8), nn.Linear(8, 9))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for ids, labels, picked in loader:
    loss = nn.functional.cross_entropy(net(ids)[picked], labels[picked])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "right: another name for what is normalised, and only that is read": """
import torch
from torch import nn

net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for batch in torch.randn(4, 8, 4).unbind():
    x = batch
    x -= x.mean()
    loss = net(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(batch.shape)
""",
    "right: the change is undone by a new value before the other name is read": """
import torch
from torch import nn

net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    x = torch.randn(8, 4)
    clean = x
    x += 1.0
    clean = torch.zeros(8, 4)
    loss = (net(x) - net(clean)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "right: a total and what shows it": """
import torch
from torch import nn

net, total = nn.Linear(4, 1), torch.zeros(())
shown = total
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(4, 8, 4).unbind():
    loss = net(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.detach()
print(total, shown)
""",
}
