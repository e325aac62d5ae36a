"""BP866 causal-mask-flipped."""

TRAIN = """
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(3):
    ids = torch.randint(0, 12, (4, 7))
    loss = nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

PROGRAMS = {
    "scores below the diagonal are taken out": """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.q, self.k, self.v = nn.Embedding(12, 8), *(nn.Linear(8, 8) for _ in range(3))
        self.out = nn.Linear(8, 12)

    def forward(self, ids):
        x = self.table(ids)
        scores = self.q(x) @ self.k(x).transpose(1, 2) / 8**0.5
        keep = torch.triu(torch.ones(x.size(1), x.size(1)))  # <- BP866
        scores = scores.masked_fill(keep == 0, float("-inf"))
        return self.out(scores.softmax(-1) @ self.v(x))
"""
    + TRAIN,
    "true means that it takes part": """
import torch
from torch import nn
import torch.nn.functional as F

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Embedding(12, 8), nn.Linear(8, 12)
        self.qkv = nn.Linear(8, 24)

    def forward(self, ids):
        q, k, v = self.qkv(self.table(ids)).chunk(3, dim=-1)
        mask = torch.ones(ids.size(1), ids.size(1), dtype=torch.bool).triu()  # <- BP866
        return self.out(F.scaled_dot_product_attention(q, k, v, attn_mask=mask))
"""
    + TRAIN,
    "scores above the diagonal are taken out": """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.q, self.k, self.v = nn.Embedding(12, 8), *(nn.Linear(8, 8) for _ in range(3))
        self.out = nn.Linear(8, 12)

    def forward(self, ids):
        x = self.table(ids)
        scores = self.q(x) @ self.k(x).transpose(1, 2) / 8**0.5
        keep = torch.tril(torch.ones(x.size(1), x.size(1)))
        scores = scores.masked_fill(keep == 0, float("-inf"))
        return self.out(scores.softmax(-1) @ self.v(x))
"""
    + TRAIN,
    "true means that it is left out": """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Embedding(12, 8), nn.Linear(8, 12)
        self.attend = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, ids):
        x = self.table(ids)
        mask = torch.ones(ids.size(1), ids.size(1), dtype=torch.bool).triu(1)
        return self.out(self.attend(x, x, x, attn_mask=mask)[0])
"""
    + TRAIN,
}
