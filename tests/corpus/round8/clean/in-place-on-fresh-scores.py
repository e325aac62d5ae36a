import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, width, heads=2):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, padding):
        n, t, d = x.shape
        q, k, v = self.qkv(x).view(n, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2)
        scores /= math.sqrt(d // self.heads)
        scores.masked_fill_(padding[:, None, None, :], -1e4)
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, d)
        y = self.out(y)
        y += x
        return y


class Net(nn.Module):
    def __init__(self, vocab=20, width=12):
        super().__init__()
        self.embed, self.attention = nn.Embedding(vocab, width, padding_idx=0), Attention(width)
        self.feed = nn.Sequential(nn.Linear(width, 24), nn.ReLU(inplace=True), nn.Linear(24, 2))

    def forward(self, tokens):
        padding = tokens == 0
        h = self.attention(self.embed(tokens), padding)
        return self.feed(h.masked_fill(padding.unsqueeze(-1), 0).sum(1) / (~padding).sum(1, keepdim=True))


torch.manual_seed(37)
tokens = torch.randint(1, 20, (80, 7))
tokens[torch.arange(7) >= torch.randint(3, 8, (80, 1))] = 0
label = (tokens == 3).any(1).long()
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(5):
    for rows in torch.randperm(80).split(20):
        loss = F.cross_entropy(net(tokens[rows]), label[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
