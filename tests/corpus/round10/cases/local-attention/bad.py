import math

import torch
import torch.nn as nn


class LocalAttention(nn.Module):
    def __init__(self, width, span, longest=64):
        super().__init__()
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width, bias=False)
        distance = (torch.arange(longest)[:, None] - torch.arange(longest)).abs()
        self.register_buffer("locality", torch.exp(-distance / span))

    def forward(self, frames):
        count = frames.size(1)
        q, k, v = self.query(frames), self.key(frames), self.value(frames)
        weights = (q @ k.transpose(1, 2) / math.sqrt(q.size(-1))).softmax(-1)
        weights.data.mul_(self.locality[:count, :count])
        return weights @ v


class PhoneTagger(nn.Module):
    def __init__(self, mels=12, width=24, phones=8):
        super().__init__()
        self.inlet = nn.Linear(mels, width)
        self.attention = LocalAttention(width, span=3.0)
        self.norm = nn.LayerNorm(width)
        self.outlet = nn.Linear(width, phones)

    def forward(self, mel):
        frames = self.inlet(mel)
        return self.outlet(self.norm(frames + self.attention(frames)))


def speech(count, segments=4, stretch=4, mels=12):
    phones = torch.randint(0, 8, (count, segments)).repeat_interleave(stretch, 1)
    codes = torch.linspace(-2, 2, 8 * mels).view(8, mels).sin()
    return codes[phones] + 0.7 * torch.randn(count, segments * stretch, mels), phones


torch.manual_seed(9)
mel, phones = speech(64)
model = PhoneTagger()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(12):
    for batch in torch.arange(64).split(16):
        loss = nn.functional.cross_entropy(model(mel[batch]).transpose(1, 2), phones[batch])
        model.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
