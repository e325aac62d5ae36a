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
    "torch.where keeps the scores above the diagonal": """
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
        ones = torch.ones(x.size(1), x.size(1))
        scores = torch.where(ones.triu() == 1, scores, -1e9)  # <- BP866
        return self.out(scores.softmax(-1) @ self.v(x))
"""
    + TRAIN,
    "torch.where takes out the scores below the diagonal": """
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
        ones = torch.ones(x.size(1), x.size(1))
        scores = torch.where(ones.tril() == 1, -1e9, scores)  # <- BP866
        return self.out(scores.softmax(-1) @ self.v(x))
"""
    + TRAIN,
    "torch.where takes nothing out": """
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
        ones = torch.ones(x.size(1), x.size(1))
        scores = torch.where(ones.tril() == 1, 2.0 * scores, scores)
        return self.out(scores.softmax(-1) @ self.v(x))
"""
    + TRAIN,
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
    "a buffer of truth values goes to an encoder in a slice": """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Embedding(12, 8), nn.Linear(8, 12)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.register_buffer("hidden", torch.tril(torch.ones(9, 9), diagonal=-1).bool())  # <- BP866

    def forward(self, ids):
        n = ids.size(1)
        x = self.table(ids)
        return self.out(self.layer(x, src_mask=self.hidden[:n, :n]))
"""
    + TRAIN,
    "a buffer goes in by its place": """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Embedding(12, 8), nn.Linear(8, 12)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        mask = torch.ones(9, 9, dtype=torch.bool)
        self.register_buffer("past", mask.tril(-1), persistent=False)  # <- BP866

    def forward(self, ids):
        n = ids.size(1)
        x = self.table(ids)
        return self.out(self.layer(x, self.past[:n, :n]))
"""
    + TRAIN,
    "a buffer that is turned round before it goes to attention": """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Embedding(12, 8), nn.Linear(8, 12)
        self.attend = nn.MultiheadAttention(8, 2, batch_first=True)
        self.register_buffer("past", torch.triu(torch.ones(9, 9)) == 0)  # <- BP866

    def forward(self, ids):
        n = ids.size(1)
        x = self.table(ids)
        return self.out(self.attend(x, x, x, attn_mask=self.past[:n, :n])[0])
"""
    + TRAIN,
    "a buffer takes the scores of the past out": """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Embedding(12, 8), nn.Linear(8, 12)
        self.score = nn.Linear(8, 8)
        self.register_buffer("keep", torch.triu(torch.ones(9, 9)).view(1, 9, 9))  # <- BP866

    def forward(self, ids):
        n = ids.size(1)
        x = self.table(ids)
        return self.out(self.score(x).matmul(x.transpose(1, 2)).masked_fill(self.keep[:, :n, :n] == 0, float("-inf")).softmax(-1) @ x)
"""
    + TRAIN,
    "a buffer of truth values hides what comes after": """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Embedding(12, 8), nn.Linear(8, 12)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.register_buffer("later", torch.triu(torch.ones(9, 9), diagonal=1).bool())

    def forward(self, ids):
        n = ids.size(1)
        x = self.table(ids)
        return self.out(self.layer(x, src_mask=self.later[:n, :n]))
"""
    + TRAIN,
    "a buffer of the lower triangle is what takes part": """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Embedding(12, 8), nn.Linear(8, 12)
        self.score = nn.Linear(8, 8)
        self.register_buffer("keep", torch.tril(torch.ones(9, 9)).view(1, 9, 9))

    def forward(self, ids):
        n = ids.size(1)
        x = self.table(ids)
        return self.out(self.score(x).matmul(x.transpose(1, 2)).masked_fill(self.keep[:, :n, :n] == 0, float("-inf")).softmax(-1) @ x)
"""
    + TRAIN,
    "a buffer of what takes part is turned round for the encoder": """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Embedding(12, 8), nn.Linear(8, 12)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.register_buffer("keep", torch.tril(torch.ones(9, 9, dtype=torch.bool)))

    def forward(self, ids):
        n = ids.size(1)
        x = self.table(ids)
        return self.out(self.layer(x, ~self.keep[:n, :n]))
"""
    + TRAIN,
    "a mask goes by its keyword to attention of the program's own": """
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(8, 8) for _ in range(3))

    def forward(self, x, mask=None):
        scores = self.q(x) @ self.k(x).transpose(1, 2) / 8**0.5
        return scores.masked_fill(~mask, -1e9).softmax(-1) @ self.v(x)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.out, self.attend = nn.Embedding(12, 8), nn.Linear(8, 12), Attention()
        self.register_buffer("keep", torch.tril(torch.ones(9, 9)).bool())

    def forward(self, ids):
        n = ids.size(1)
        return self.out(self.attend(self.table(ids), mask=self.keep[:n, :n]))
"""
    + TRAIN,
    "what is blocked is filled with a number that has a name": """
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
        lowest = float("-inf")
        blocked = torch.full((x.size(1), x.size(1)), lowest)
        scores = scores + torch.tril(blocked, diagonal=-1)  # <- BP866
        return self.out(scores.softmax(-1) @ self.v(x))
"""
    + TRAIN,
    "what comes later is filled with a number that has a name": """
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
        lowest = float("-inf")
        blocked = torch.full((x.size(1), x.size(1)), lowest)
        scores = scores + torch.triu(blocked, diagonal=1)
        return self.out(scores.softmax(-1) @ self.v(x))
"""
    + TRAIN,
    "a number that has a name stands where the mask is zero": """
import torch
from torch import nn

lowest = -1e9

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.q, self.k, self.v = nn.Embedding(12, 8), *(nn.Linear(8, 8) for _ in range(3))
        self.out = nn.Linear(8, 12)

    def forward(self, ids):
        x = self.table(ids)
        scores = self.q(x) @ self.k(x).transpose(1, 2) / 8**0.5
        keep = torch.triu(torch.ones(x.size(1), x.size(1)))  # <- BP866
        scores = scores.masked_fill(keep == 0, lowest)
        return self.out(scores.softmax(-1) @ self.v(x))
"""
    + TRAIN,
    "each step to the buffer has a name of its own": """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Embedding(12, 8), nn.Linear(8, 12)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        full = torch.ones(9, 9)
        lower = torch.tril(full, diagonal=-1)  # <- BP866
        hidden = lower.bool()
        self.register_buffer("hidden", hidden)

    def forward(self, ids):
        n = ids.size(1)
        x = self.table(ids)
        mask = self.hidden[:n, :n]
        return self.out(self.layer(x, src_mask=mask))
"""
    + TRAIN,
    "each step to the buffer has a name of its own, and one turns it round": """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Embedding(12, 8), nn.Linear(8, 12)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        full = torch.ones(9, 9)
        lower = torch.tril(full)
        seen = lower.bool()
        hidden = ~seen
        self.register_buffer("hidden", hidden)

    def forward(self, ids):
        n = ids.size(1)
        x = self.table(ids)
        mask = self.hidden[:n, :n]
        return self.out(self.layer(x, src_mask=mask))
"""
    + TRAIN,
    "it is turned round under the same name": """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Embedding(12, 8), nn.Linear(8, 12)
        self.score = nn.Linear(8, 8)

    def forward(self, ids):
        n = ids.size(1)
        x = self.table(ids)
        mask = torch.tril(torch.ones(n, n))
        mask = mask.bool()
        mask = ~mask
        scores = self.score(x).matmul(x.transpose(1, 2)).masked_fill(mask, float("-inf"))
        return self.out(scores.softmax(-1) @ x)
"""
    + TRAIN,
}
