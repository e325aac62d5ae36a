# /// case
# title = "The recurrent state goes from one window to the next with its graph"
# category = "retention"
# kind = "missing-detach-between-windows"
# kinds_also_ok = ["hidden-state-not-detached", "backward-through-freed-graph"]
# severity = "error"
# names = ["state", "hidden", "detach"]
# symptom = "the second window's backward raises"
# raises = "RuntimeError"
# raises_message = "Trying to backward through the graph a second time"
# cause = "The state of the last window is the initial state of the next, and its graph has been freed by the last backward."
# fix = "detach the state"
# ///
import math

import torch
import torch.nn as nn


class Forecaster(nn.Module):
    def __init__(self, channels=2, hidden=16):
        super().__init__()
        self.rnn = nn.LSTM(channels, hidden, batch_first=True)
        self.readout = nn.Linear(hidden, channels)

    def forward(self, series, state=None):
        out, state = self.rnn(series, state)
        return self.readout(out), state


def windows(series, length):
    for begin in range(0, series.shape[1] - length, length):
        yield series[:, begin:begin + length], series[:, begin + 1:begin + length + 1]


def make_series(count=6, length=121):
    t = torch.arange(length) / 6
    phase = torch.rand(count, 1) * 2 * math.pi
    wave = torch.stack([torch.sin(t + phase), torch.cos(0.5 * t + phase)], dim=2)
    return wave + 0.05 * torch.randn_like(wave)


torch.manual_seed(12)
net = Forecaster()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
series = make_series()
for epoch in range(3):
    state = None
    total, count = 0.0, 0
    for window, target in windows(series, 20):
        forecast, state = net(window, state)  #! here
#+         state = tuple(s.detach() for s in state)
        loss = nn.functional.mse_loss(forecast, target)
        optimizer.zero_grad()
        loss.backward()  #! here
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        total, count = total + loss.item(), count + 1
    print(f"epoch {epoch}: {total / count:.4f}")
