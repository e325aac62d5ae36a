# /// case
# title = "retain_graph=True in place of detaching the state that is carried over"
# category = "retention"
# kind = "hidden-state-not-detached"
# kinds_also_ok = ["retain-graph-hides-missing-detach", "truncated-bptt-not-truncated", "graph-retained"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["state", "retain_graph", "detach"]
# symptom = "every window goes back to the start of the day, at growing time and memory"
# symptom_check = "trainer.state.requires_grad"
# cause = "The state keeps the graph of all earlier windows, which retain_graph=True lets be walked again and again."
# fix = "detach the state between windows and drop retain_graph"
# ///
import math

import torch
from torch import nn
import torch.nn.functional as F


class StreamingForecaster(nn.Module):
    def __init__(self, meters, hidden=20):
        super().__init__()
        self.hidden = hidden
        self.encode = nn.Linear(meters, hidden)
        self.cell = nn.GRUCell(hidden, hidden)
        self.decode = nn.Linear(hidden, meters)

    def initial(self, batch):
        return torch.zeros(batch, self.hidden)

    def forward(self, readings, state):
        forecasts = []
        for reading in readings.unbind(1):
            state = self.cell(torch.tanh(self.encode(reading)), state)
            forecasts.append(self.decode(state))
        return torch.stack(forecasts, dim=1), state


def days(meters, batch, length):
    amplitude = 0.5 + torch.rand(batch, 1, meters)
    while True:
        offset = 24 * torch.rand(batch, 1, 1)
        hour = torch.arange(length + 1.0)[None, :, None] + offset
        wave = amplitude * torch.sin(2 * math.pi * hour / 24)
        yield wave + 0.1 * torch.randn(batch, length + 1, meters)


def windows(series, size):
    inputs, targets = series[:, :-1], series[:, 1:]
    return zip(inputs.split(size, dim=1), targets.split(size, dim=1))


class TruncatedTrainer:
    """One optimizer step a day; back-propagation is truncated to a window of a few hours."""

    def __init__(self, model, window, lr=5e-3):
        self.model, self.window = model, window
        self.optimizer = torch.optim.RMSprop(model.parameters(), lr=lr)
        self.state = None

    def window_loss(self, inputs, targets):
        forecast, self.state = self.model(inputs, self.state)  #- here
#+         forecast, state = self.model(inputs, self.state)
#+         self.state = state.detach()
        return F.mse_loss(forecast, targets)  #! also

    def day(self, series):
        self.state = self.model.initial(len(series))
        self.optimizer.zero_grad()
        values = []
        for inputs, targets in windows(series, self.window):
            loss = self.window_loss(inputs, targets)  #! also
            loss.backward(retain_graph=True)  #- here
#+             loss.backward()
            values.append(loss.item())
        for parameter in self.model.parameters():
            parameter.grad.div_(len(values))
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return sum(values) / len(values)


torch.manual_seed(48)
trainer = TruncatedTrainer(StreamingForecaster(meters=3), window=6)
stream = days(meters=3, batch=16, length=48)
for day in range(12):
    value = trainer.day(next(stream))
    if day % 3 == 2:
        print(f"day {day + 1} mse {value:.4f} state {trainer.state.norm().item():.3f}")
