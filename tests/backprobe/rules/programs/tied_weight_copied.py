"""BP763 tied-weight-copied."""

TRAIN = """
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(3):
    ids = torch.randint(0, 12, (4, 6))
    loss = nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

PROGRAMS = {
    "one memory, two parameters": """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Embedding(12, 6), nn.Linear(6, 12, bias=False)
        self.out.weight.data = self.table.weight.data  # <- BP763

    def forward(self, ids):
        return self.out(torch.tanh(self.table(ids)))
"""
    + TRAIN,
    "a detached copy becomes the weight": """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(12, 6)
        self.project = nn.Linear(6, 12)
        weight = self.embed.weight.detach().clone()
        self.project.weight = nn.Parameter(weight)  # <- BP763

    def forward(self, ids):
        return self.project(torch.tanh(self.embed(ids)))
"""
    + TRAIN,
    "one parameter in two places": """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Embedding(12, 6), nn.Linear(6, 12, bias=False)
        self.out.weight = self.table.weight

    def forward(self, ids):
        return self.out(torch.tanh(self.table(ids)))
"""
    + TRAIN,
    "a table is begun with another one's values": """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.read, self.write, self.out = nn.Embedding(12, 6), nn.Embedding(12, 6), nn.Linear(6, 12)
        self.write.weight = nn.Parameter(self.read.weight.detach().clone())
        nn.init.normal_(self.out.weight)

    def forward(self, ids):
        return self.out(torch.tanh(self.read(ids) * self.write(ids)))
"""
    + TRAIN,
}
