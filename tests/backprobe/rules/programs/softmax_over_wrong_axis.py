"""BP864 softmax-over-wrong-axis."""

PROGRAMS = {
    "a gate over the words of a graph of sentences, normalised over the sentences": """
import torch
from dataclasses import dataclass
from torch import nn

@dataclass
class Config:
    vocab: int = 30
    width: int = 12
    classes: int = 4

class Reader(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.words = nn.Embedding(config.vocab, config.width)
        self.gate = nn.Linear(config.width, 1)
        self.out = nn.Linear(config.width, config.classes)
        self.normalise = nn.Softmax(dim=0)  # <- BP864

    def forward(self, ids):
        hidden = torch.tanh(self.words(ids))
        share = self.normalise(self.gate(hidden))
        return self.out((share * hidden).sum(dim=1))

reader = Reader(Config())
optimizer = torch.optim.AdamW(reader.parameters(), lr=1e-3)
for _ in range(4):
    ids, labels = torch.randint(0, 30, (6, 9)), torch.randint(0, 4, (6,))
    loss = nn.functional.cross_entropy(reader(ids), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "attention of several heads, normalised over the queries": """
import torch
from torch import nn

class Heads(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = self.qkv(x).view(b, t, self.heads, 3 * w // self.heads).transpose(1, 2).chunk(3, dim=-1)
        scores = q @ k.transpose(-2, -1) / k.size(-1) ** 0.5
        mask = torch.ones(t, t, dtype=torch.bool).triu(1)
        share = scores.masked_fill(mask, -1e9).softmax(dim=-2)  # <- BP864
        return (self.drop(share) @ v).transpose(1, 2).reshape(b, t, w)

block, head = Heads(8, 2), nn.Linear(8, 5)
optimizer = torch.optim.Adam([*block.parameters(), *head.parameters()], lr=1e-3)
for _ in range(3):
    x, y = torch.randn(4, 6, 8), torch.randint(0, 5, (4, 6))
    loss = nn.functional.cross_entropy(head(block(x)).flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "a policy for several environments, normalised over them": """
import torch
from torch import nn
from torch.distributions import Categorical

policy = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
for episode in range(4):
    states = torch.randn(7, 5)
    probabilities = torch.softmax(policy(states), dim=0)  # <- BP864
    choice = Categorical(probabilities)
    actions = choice.sample()
    returns = states.gather(1, actions[:, None]).squeeze(1)
    loss = -(choice.log_prob(actions) * (returns - returns.mean())).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "capsules vote: normalised over the parents, summed over the children": """
import torch
from torch import nn

votes_of, out = nn.Linear(4, 12), nn.Linear(4, 2)
optimizer = torch.optim.Adam([*votes_of.parameters(), *out.parameters()], lr=1e-3)
logits = torch.zeros(8, 5, 3, 1, requires_grad=True)
for _ in range(3):
    votes = votes_of(torch.randn(8, 5, 4)).view(8, 5, 3, 4)
    share = logits.softmax(dim=2)
    parents = (share * votes).sum(dim=1)
    optimizer.zero_grad()
    nn.functional.cross_entropy(out(parents.mean(1)), torch.randint(0, 2, (8,))).backward()
    optimizer.step()
""",
    "a bag of instances is pooled over its instances": """
import torch
from torch import nn

encode, score, out = nn.Linear(6, 10), nn.Linear(10, 1), nn.Linear(10, 1)
optimizer = torch.optim.Adam([*encode.parameters(), *score.parameters(), *out.parameters()], lr=1e-3)
for size in (5, 9, 7, 4):
    hidden = torch.relu(encode(torch.randn(size, 6)))
    share = torch.softmax(score(hidden), dim=0)
    pooled = (share * hidden).sum(dim=0)
    optimizer.zero_grad()
    nn.functional.binary_cross_entropy_with_logits(out(pooled), torch.ones(1)).backward()
    optimizer.step()
""",
    "linear attention and slots": """
import torch
from torch import nn

q, k, v, out = (nn.Linear(6, 6) for _ in range(4))
optimizer = torch.optim.Adam([p for m in (q, k, v, out) for p in m.parameters()], lr=1e-3)
for _ in range(3):
    x, y = torch.randn(4, 7, 6), torch.randint(0, 6, (4,))
    context = k(x).softmax(dim=1).transpose(1, 2) @ v(x)
    mixed = q(x).softmax(dim=-1) @ context
    slots = torch.softmax(q(x) @ k(x).transpose(1, 2), dim=1)
    slots = slots / slots.sum(dim=-1, keepdim=True)
    mixed = mixed + slots @ v(x)
    loss = nn.functional.cross_entropy(out(mixed.mean(1)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "time first, and an image matched both ways": """
import torch
from torch import nn

step, score, out = nn.GRU(3, 8), nn.Linear(8, 1), nn.Linear(8, 2)
left, right = nn.Linear(4, 6), nn.Linear(4, 6)
parts = [step, score, out, left, right]
optimizer = torch.optim.Adam([p for m in parts for p in m.parameters()], lr=1e-3)
for _ in range(3):
    states, _last = step(torch.randn(9, 5, 3))
    share = score(states).softmax(dim=0)
    loss = nn.functional.cross_entropy(out((share * states).sum(0)), torch.randint(0, 2, (5,)))
    match = left(torch.randn(5, 4)) @ right(torch.randn(5, 4)).t()
    loss = loss - match.log_softmax(0).diagonal().mean() - match.softmax(0).diagonal().log().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
}
