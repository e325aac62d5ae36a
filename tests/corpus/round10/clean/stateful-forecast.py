import math

import torch
from torch import nn


class StatefulForecaster(nn.Module):
    def __init__(self, channels, hidden):
        super().__init__()
        self.cell = nn.LSTM(channels, hidden, batch_first=True)
        self.out = nn.Linear(hidden, channels)
        nn.init.constant_(self.cell.bias_hh_l0[hidden:2 * hidden], 1.0)

    def forward(self, x, state):
        h, state = self.cell(x, state)
        return x + self.out(h), state


def repackage(state):
    return tuple(part.detach() for part in state)


def telemetry(batch, length, channels=2):
    t = torch.arange(length + 1) / 12
    phase = 2 * math.pi * torch.rand(batch, 1, channels)
    rate = 1 + torch.rand(batch, 1, channels)
    return torch.sin(rate * 2 * math.pi * t[None, :, None] + phase)


torch.manual_seed(46)
series = telemetry(batch=16, length=96)
inputs, targets = series[:, :-1], series[:, 1:]
model = StatefulForecaster(2, 24)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
epoch_losses = []
for epoch in range(8):
    state, running = None, torch.zeros(())
    for x, y in zip(inputs.split(16, dim=1), targets.split(16, dim=1)):
        if state is not None:
            state = repackage(state)
        prediction, state = model(x, state)
        loss = nn.functional.mse_loss(prediction, y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        running += loss.detach()
    epoch_losses.append(running.item() / 6)
    print(epoch, round(epoch_losses[-1], 5))
