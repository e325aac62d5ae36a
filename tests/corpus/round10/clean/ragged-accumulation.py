import itertools

import torch
import torch.nn as nn
import torch.nn.functional as F


def utterance_stream(count, bins=12):
    for index in range(count):
        frames = 6 + (index * 7) % 15
        labels = torch.randint(0, 5, (frames,))
        yield F.one_hot(labels, bins).float() * 2 + torch.randn(frames, bins), labels


def grouped(iterable, size):
    iterator = iter(iterable)
    while group := list(itertools.islice(iterator, size)):
        yield group


class FrameNet(nn.Module):
    def __init__(self, bins=12, width=24):
        super().__init__()
        self.rnn = nn.GRU(bins, width, bidirectional=True)
        self.out = nn.Linear(2 * width, 5)

    def forward(self, frames):
        return self.out(self.rnn(frames)[0])


def update(model, optimizer, group):
    frames = sum(len(labels) for _, labels in group)
    total = 0.0
    for mel, labels in group:
        loss = F.cross_entropy(model(mel), labels, reduction="sum") / frames
        loss.backward()
        total += loss.item()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 2.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
    return total, norm.item()


def main():
    torch.manual_seed(29)
    model = FrameNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.8)
    meter = None
    for epoch in range(6):
        for group in grouped(utterance_stream(22), 4):
            total, norm = update(model, optimizer, group)
            meter = total if meter is None else 0.9 * meter + 0.1 * total
        print(f"epoch {epoch} last group {len(group)} loss {meter:.4f} norm {norm:.3f}")
    return model


model = main()
