"""BP501 nonfinite-forward."""

PROGRAMS = {
    "a ratio in a function, noticed at the loss": """
import torch
from torch import nn

net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)

def normalise(values, count):
    total = values.sum(1)
    share = total / count  # <- BP501
    return share - share.mean()

for _ in range(3):
    loss = normalise(net(torch.randn(3, 4)), torch.tensor([2.0, 0.0, 1.0])).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "the bad step is left out": """
import torch
from torch import nn

net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(4):
    scale = 0.0 if step == 1 else 1.0
    loss = (net(torch.randn(3, 4)) / scale).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    if torch.isfinite(loss):
        opt.step()
""",
    "a best value starts at infinity": """
import torch
from torch import nn

net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
best = torch.tensor(float("inf"))
for _ in range(3):
    loss = net(torch.randn(3, 4)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    best = torch.minimum(best, loss.detach())
print(best)
""",
    "a metric is NaN and stays out of the loss": """
import torch
from torch import nn

net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    out = net(torch.randn(3, 4))
    ratio = out.detach().sum() / 0 - out.detach().sum() / 0
    loss = out.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(ratio)
""",
    "a mask is added, not filled in": """
import torch
from torch import nn

q, k = nn.Linear(4, 4), nn.Linear(4, 4)
opt = torch.optim.SGD([*q.parameters(), *k.parameters()], lr=0.1)
mask = torch.full((3, 3), float("-inf")).triu(1)
for x in torch.randn(3, 3, 4):
    scores = q(x) @ k(x).t() + mask
    loss = (scores.softmax(1) @ x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "the logarithm of what a softmax gives to a masked choice": """
import torch
from torch import nn

class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(4, 3)

    def forward(self, x, shut):
        return self.score(x).masked_fill(shut, float("-inf")).softmax(1)

def entropy(p):
    return -(p * p.log()).sum(1)  # <- BP501

net = Policy()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
shut = torch.tensor([[True, False, False]])
for x in torch.randn(3, 8, 4):
    loss = entropy(net(x, shut)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "the logarithm of that, kept away from 0": """
import torch
from torch import nn

class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(4, 3)

    def forward(self, x, shut):
        return self.score(x).masked_fill(shut, float("-inf")).softmax(1)

def entropy(p):
    return -(p * (p + 1e-8).log()).sum(1)

net = Policy()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
shut = torch.tensor([[True, False, False]])
for x in torch.randn(3, 8, 4):
    loss = entropy(net(x, shut)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "what a mask is filled with has a name": """
import torch
from torch import nn



def chances(scores, barred):
    lowest = float("-inf")
    masked = scores.masked_fill(barred, lowest)
    return masked.softmax(1)

net = nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 5, 4):
    p = chances(net(x), torch.tensor([False, True, False]))
    logs = p.log()  # <- BP501
    spread = -(p * logs).sum(1)
    opt.zero_grad()
    spread.mean().backward()
    opt.step()
""",
    "what a mask is filled with has a name outside of functions": """
import torch
from torch import nn

lowest = float("-inf")

def chances(scores, barred):
    barred = barred.bool()
    masked = scores.masked_fill(barred, lowest)
    return masked.softmax(1)

net = nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 5, 4):
    p = chances(net(x), torch.tensor([False, True, False]))
    logs = p.log()  # <- BP501
    spread = -(p * logs).sum(1)
    opt.zero_grad()
    spread.mean().backward()
    opt.step()
""",
    "what a mask is filled with has a name, and no zero gets to the logarithm": """
import torch
from torch import nn



def chances(scores, barred):
    lowest = float("-inf")
    masked = scores.masked_fill(barred, lowest)
    return masked.softmax(1)

net = nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 5, 4):
    p = chances(net(x), torch.tensor([False, True, False]))
    logs = p.clamp_min(1e-6).log()
    spread = -(p * logs).sum(1)
    opt.zero_grad()
    spread.mean().backward()
    opt.step()
""",
    "a row that is masked whole, in a statement before its softmax": """
import math

import torch
import torch.nn as nn

torch.manual_seed(72)
PAD = 0


class ScaledDotProductAttention(nn.Module):
    def forward(self, q, k, v, attn_mask):
        attn = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.shape[-1])
        attn = attn.masked_fill(attn_mask, -float("inf"))  # <- BP501
        return torch.bmm(attn.softmax(-1), v)


class Encoder(nn.Module):
    def __init__(self, vocab=30, d=16):
        super().__init__()
        self.emb = nn.Embedding(vocab, d, padding_idx=PAD)
        self.wq, self.wk, self.wv = (nn.Linear(d, d) for _ in range(3))
        self.attention, self.norm, self.out = ScaledDotProductAttention(), nn.LayerNorm(d), nn.Linear(d, vocab)

    def forward(self, seq):
        x = self.emb(seq)
        n = seq.shape[1]
        earlier = torch.ones(n, n, dtype=torch.bool).tril(-1)
        mask = ~(earlier & (seq != PAD)[:, None])
        return self.out(self.norm(x + self.attention(self.wq(x), self.wk(x), self.wv(x), mask)))


model = Encoder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for it in range(3):
    seq = torch.randint(1, 30, (6, 9))
    seq[3:, 6:] = PAD
    logits = model(seq)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), seq.flatten(), ignore_index=PAD)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
}
