import torch
from torch import nn


class Stateful(nn.Module):
    def __init__(self, hidden=20):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.read = nn.Linear(hidden, 1)
        self.state = None

    def reset(self):
        self.state = None

    def forward(self, window):
        out, state = self.lstm(window, self.state)
        self.state = tuple(s.detach() for s in state)
        return self.read(out)


class RunningMean:
    def __init__(self):
        self.total, self.count = torch.zeros(()), 0

    def add(self, value, count):
        self.total += value.detach() * count
        self.count += count

    @property
    def value(self):
        return (self.total / self.count).item()


def meters(count=8, length=64):
    t = torch.arange(length + 1) * 0.3
    series = torch.sin(t + 6.28 * torch.rand(count, 1)) + 0.05 * torch.randn(count, length + 1)
    return series.unsqueeze(-1)


torch.manual_seed(2)
model = Stateful()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
series = meters()
for epoch in range(4):
    model.reset()
    mean = RunningMean()
    for inputs, targets in zip(series[:, :-1].split(16, 1), series[:, 1:].split(16, 1)):
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        mean.add(loss, targets.numel())
    print(f"epoch {epoch} mse {mean.value:.4f}")
