# /// case
# title = "Predictions of shape (N, 1) meet targets of shape (N,) in a hand-written loss"
# category = "loss"
# kind = "target-shape-broadcast"
# kinds_also_ok = ["loss-broadcasts", "shape-mismatch-in-loss", "prediction-target-broadcast"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["prediction", "target", "pinball", "error"]
# symptom = "every prediction is compared with every target, and the model learns the median of the batch"
# symptom_check = "final_loss > 0.2"
# cause = "(N,) minus (N, 1) broadcasts to (N, N)."
# fix = "squeeze the last dimension of the prediction"
# ///
import math

import torch
from torch import nn


class Forecaster(nn.Module):
    def __init__(self, channels=2, hidden=24):
        super().__init__()
        self.rnn = nn.GRU(channels, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, window):
        _, last = self.rnn(window)
        return self.out(last[-1])  #- here
#+         return self.out(last[-1]).squeeze(-1)


def pinball(prediction, target, quantile):
    error = target - prediction  #! here
    return torch.maximum(quantile * error, (quantile - 1) * error).mean()  #! also


def load_curve(hours):
    t = torch.arange(hours, dtype=torch.float32)
    load = torch.sin(2 * math.pi * t / 24) + 0.3 * torch.sin(2 * math.pi * t / 168)
    return torch.stack([load + 0.05 * torch.randn(hours), torch.cos(2 * math.pi * t / 24)], 1)


def windows(series, length, horizon):
    views = series.unfold(0, length + horizon, 1).transpose(1, 2)
    return views[:, :length], views[:, -1, 0]  #! here


def fit(model, x, y, quantile=0.5, steps=30):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    for step in range(steps):
        rows = torch.randint(0, len(x), (64,))
        loss = pinball(model(x[rows]), y[rows], quantile)  #! here
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step} pinball {loss.item():.4f}")
    return loss.item()


torch.manual_seed(37)
series = load_curve(300)
x, y = windows(series, length=18, horizon=3)
model = Forecaster()
final_loss = fit(model, x, y)
print(f"final {final_loss:.4f}")
