"""BP814 micro-batches-not-divided."""

PROGRAMS = {
    "accumulation not divided": """
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
batch, target = torch.randn(32, 4), torch.randn(32, 1)
for epoch in range(3):
    optimizer.zero_grad()
    for x, y in zip(batch.chunk(4), target.chunk(4)):
        F.mse_loss(net(x), y).backward()  # <- BP814
    optimizer.step()
""",
    "a window that a counter makes": """
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
accumulate = 4
optimizer.zero_grad()
for i, x in enumerate(torch.randn(12, 8, 4)):
    loss = F.mse_loss(net(x), x.sum(1, keepdim=True))
    loss.backward()  # <- BP814
    if (i + 1) % accumulate == 0:
        optimizer.step()
        optimizer.zero_grad()
""",
    "accumulation of slices in a trainer": """
import torch
from torch import nn

torch.manual_seed(0)
class Trainer:
    def __init__(self, model, micro):
        self.model, self.micro = model, micro
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def loss(self, x, y):
        return nn.functional.cross_entropy(self.model(x), y)

    def step(self, x, y):
        self.optimizer.zero_grad()
        for start in range(0, len(x), self.micro):
            self.loss(x[start:start + self.micro], y[start:start + self.micro]).backward()  # <- BP814
        self.optimizer.step()

trainer = Trainer(nn.Linear(6, 3), 4)
for _ in range(3):
    trainer.step(torch.randn(16, 6), torch.randint(0, 3, (16,)))
""",
    "accumulation divided by a scaler's division, in a trainer": """
import torch
from torch import nn

torch.manual_seed(0)
class Trainer:
    def __init__(self, model, k):
        self.model, self.k = model, k
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def fit(self, batches):
        for i, x in enumerate(batches):
            loss = self.model(x).pow(2).mean()
            (loss * (1 / self.k)).backward()
            if (i + 1) % self.k == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()

Trainer(nn.Linear(6, 3), 2).fit(torch.randn(8, 4, 6))
""",
    "gradients of tasks add up, then one step": """
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(3):
    optimizer.zero_grad()
    for task in (0, 1, 2, 3):
        x = torch.randn(8, 4)
        F.mse_loss(net(x)[:, task], x[:, task]).backward()
    optimizer.step()
""",
    "every kth step is only reported": """
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for i, x in enumerate(torch.randn(9, 8, 4)):
    optimizer.zero_grad()
    loss = F.mse_loss(net(x), x)
    loss.backward()
    optimizer.step()
    if i % 3 == 0:
        print(loss.item())
""",
}
