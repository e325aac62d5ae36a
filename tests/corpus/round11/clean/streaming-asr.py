from dataclasses import dataclass

import torch
from torch import nn
import torch.nn.functional as F


@dataclass
class Settings:
    chunk: int = 16
    accumulate: int = 3
    lr: float = 8e-3
    clip: float = 1.0
    epochs: int = 6


class StreamingTagger(nn.Module):
    def __init__(self, inputs, hidden, tags):
        super().__init__()
        self.rnn = nn.LSTM(inputs, hidden, batch_first=True)
        self.out = nn.Linear(hidden, tags)

    def forward(self, chunk, state=None):
        hidden, state = self.rnn(chunk, state)
        return self.out(hidden), state


def carry(state):
    return tuple(part.detach() for part in state)


def recordings(count, frames, inputs=6):
    """A tag is told by a cue that came up to several frames earlier."""
    cues = (torch.rand(count, frames) < 0.15).float()
    tags, current = [], torch.zeros(count, dtype=torch.long)
    kinds = torch.randint(1, 3, (count, frames))
    for t in range(frames):
        current = torch.where(cues[:, t] > 0, kinds[:, t], current)
        tags.append(current)
    x = 0.3 * torch.randn(count, frames, inputs)
    x[:, :, 0] += cues * (kinds == 1)
    x[:, :, 1] += cues * (kinds == 2)
    return x, torch.stack(tags, 1)


def train_recording(model, optimizer, x, y, cfg):
    """Truncated back-propagation: gradients are summed over some chunks, the state goes on through all."""
    state, value = None, 0.0
    windows = list(zip(x.split(cfg.chunk, 1), y.split(cfg.chunk, 1)))
    pending = 0
    optimizer.zero_grad()
    for number, (part, tags) in enumerate(windows):
        logits, state = model(part, state)
        state = carry(state)
        group_start = number - number % cfg.accumulate
        size = min(cfg.accumulate, len(windows) - group_start)
        loss = F.cross_entropy(logits.flatten(0, 1), tags.flatten())
        (loss / size).backward()
        value += loss.item() / len(windows)
        pending += 1
        if pending == size:
            nn.utils.clip_grad_norm_(model.parameters(), cfg.clip)
            optimizer.step()
            optimizer.zero_grad()
            pending = 0
    return value


@torch.no_grad()
def accuracy(model, x, y):
    logits, _ = model(x)
    return (logits.argmax(-1) == y).float().mean().item()


torch.manual_seed(58)
cfg = Settings()
x, y = recordings(64, frames=128)
model = StreamingTagger(6, 24, 3)
optimizer = torch.optim.RMSprop(model.parameters(), lr=cfg.lr)
for epoch in range(cfg.epochs):
    values = [train_recording(model, optimizer, x[i], y[i], cfg) for i in torch.randperm(64).split(16)]
    print(f"epoch {epoch} loss {sum(values) / len(values):.4f}")
print(f"accuracy {accuracy(model, *recordings(32, frames=128)):.3f}")
