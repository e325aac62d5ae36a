"""BP865 micro-batch-means-unequal."""

PROGRAMS = {
    "labels that are ignored make the counts differ": """
import torch
from torch import nn

class Tuner:
    def __init__(self, every=2):
        self.model = nn.Sequential(nn.Embedding(14, 8), nn.Linear(8, 14))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.every = every

    def loss(self, ids, labels):
        logits = self.model(ids)
        return nn.functional.cross_entropy(logits.view(-1, 14), labels.view(-1))  # <- BP865

    def run(self, examples):
        for at, (ids, labels) in enumerate(examples):
            (self.loss(ids, labels) / self.every).backward()
            if (at + 1) % self.every == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()

def example(answer):
    ids = torch.randint(0, 14, (1, 12))
    labels = ids.clone()
    labels[:, : 12 - answer] = -100
    return ids, labels

Tuner().run([example(n) for n in (10, 2, 9, 1, 11, 3)])
""",
    "the last batch of an epoch is smaller": """
import torch
from torch import nn

model = nn.Linear(5, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for at, size in enumerate((8, 8, 8, 3)):
        loss = nn.functional.cross_entropy(model(torch.randn(size, 5)), torch.randint(0, 3, (size,)))
        (loss / 2).backward()
        if at % 2:
            optimizer.step()
            optimizer.zero_grad()
""",
    "each text is one step": """
import torch
from torch import nn

model = nn.Sequential(nn.Embedding(14, 8), nn.Linear(8, 14))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for length in (4, 12, 7, 3):
    ids = torch.randint(0, 14, (1, length))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten()).backward()
    optimizer.step()
""",
    "two tasks with losses of their own": """
import torch
from torch import nn

model = nn.Linear(5, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for turn in range(4):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(torch.randn(16, 5)), torch.randint(0, 3, (16,))).backward()
    nn.functional.cross_entropy(model(torch.randn(4, 5)), torch.randint(0, 3, (4,))).backward()
    optimizer.step()
""",
    "two losses of one statement, over parts of a batch": """
import torch
from torch import nn
torch.manual_seed(0)

net, label, domain = nn.Linear(4, 8), nn.Linear(8, 3), nn.Linear(8, 2)
opt = torch.optim.SGD([*net.parameters(), *label.parameters(), *domain.parameters()], lr=0.1)
ce = nn.functional.cross_entropy
for x in torch.randn(3, 8, 4):
    h = net(x)
    loss = ce(label(h[:4]), torch.tensor([0, 1, 2, 0])) + ce(domain(h), torch.arange(8) // 4)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a function is asked for the mean here, for a sum there": """
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
net = nn.Linear(4, 5)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

def loss_of(x, y, reduction):
    return F.cross_entropy(net(x), y, reduction=reduction)

for _ in range(3):
    parts = [(torch.randn(n, 4), torch.randint(5, (n,))) for n in (2, 9, 3)]
    with torch.no_grad():
        print(sum(loss_of(x, y, "sum") for x, y in parts) / 14)
    optimizer.zero_grad()
    for x, y in parts:
        loss = loss_of(x, y, "mean") / 3  # <- BP865
        loss.backward()
    optimizer.step()
""",
    "a function is asked for the sum": """
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
net = nn.Linear(4, 5)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

def loss_of(x, y, reduction):
    return F.cross_entropy(net(x), y, reduction=reduction)

for _ in range(3):
    parts = [(torch.randn(n, 4), torch.randint(5, (n,))) for n in (2, 9, 3)]
    with torch.no_grad():
        print(sum(loss_of(x, y, "sum") for x, y in parts) / 14)
    optimizer.zero_grad()
    for x, y in parts:
        loss = loss_of(x, y, "sum") / 14
        loss.backward()
    optimizer.step()
""",
}
