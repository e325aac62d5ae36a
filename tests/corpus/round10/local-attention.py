# /// case
# title = "The attention weights are multiplied in place through .data, behind autograd's back"
# category = "in-place"
# kind = "data-write-of-saved-tensor"
# kinds_also_ok = ["in-place-through-data", "silent-in-place-modification", "untracked-in-place", "wrong-gradient-from-data"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["weights", "data", "locality", "mul_"]
# symptom = "nothing raises; the gradients of query and key are wrong"
# symptom_check = "not torch.autograd.gradcheck(model.attention.double(), torch.randn(2, 5, 24, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_(), raise_exception=False)"
# cause = "softmax saved its output for backward; .data changes it without the version counter, and the factor itself is missing from the graph."
# fix = "weights = weights * locality"
# ///
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
        weights = (q @ k.transpose(1, 2) / math.sqrt(q.size(-1))).softmax(-1)  #! also
        weights.data.mul_(self.locality[:count, :count])  #- here
#+         weights = weights * self.locality[:count, :count]
        return weights @ v  #! also


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
        loss.backward()  #! also
        optimizer.step()
    print(epoch, loss.item())
