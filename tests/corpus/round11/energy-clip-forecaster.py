# /// case
# title = "A filter object is used up by the optimizer, so clipping sees no parameters"
# category = "optimizer"
# kind = "exhausted-parameter-iterator"
# kinds_also_ok = ["parameters-generator-exhausted", "clipping-has-no-effect", "clip-grad-norm-empty"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["trainable", "filter", "clip_grad_norm_"]
# symptom = "the reported gradient norm is always 0 and gradients are never clipped"
# symptom_check = "max(trainer.history['norm']) == 0"
# cause = "filter() is an iterator and is empty once the optimizer has read it."
# fix = "make it a list"
# ///
import math
from collections import defaultdict

import torch
from torch import nn


class QuantileLSTM(nn.Module):
    def __init__(self, channels, hidden, quantiles):
        super().__init__()
        self.register_buffer("quantiles", torch.tensor(quantiles))
        self.calendar = nn.Linear(2, channels)
        self.calendar.requires_grad_(False)
        self.cell = nn.LSTM(1 + channels, hidden, batch_first=True)
        self.readout = nn.Linear(hidden, len(quantiles))

    def forward(self, load, phase):
        clock = torch.stack([phase.sin(), phase.cos()], dim=-1)
        sequence, _ = self.cell(torch.cat([load.unsqueeze(-1), self.calendar(clock)], dim=-1))
        return self.readout(sequence[:, -1])

    def pinball(self, forecast, actual):
        error = actual.unsqueeze(-1) - forecast
        return torch.maximum(self.quantiles * error, (self.quantiles - 1.0) * error).mean()


class HouseholdLoad:
    def __init__(self, hours, window):
        t = torch.arange(hours, dtype=torch.float32)
        self.phase = 2 * math.pi * (t % 24) / 24
        spikes = torch.distributions.StudentT(1.8).sample((hours,)).abs()
        self.load = 2.0 + 0.8 * self.phase.sin() + 0.4 * spikes
        self.window = window

    def sample(self, count):
        start = torch.randint(0, len(self.load) - self.window - 1, (count, 1))
        index = start + torch.arange(self.window)
        return self.load[index], self.phase[index], self.load[start.squeeze(1) + self.window]


class ForecastTrainer:
    def __init__(self, model, lr=5e-2, max_norm=0.5):
        self.model = model
        self.max_norm = max_norm
        self.trainable = filter(lambda p: p.requires_grad, model.parameters())  #- here
#+         self.trainable = [p for p in model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.SGD(self.trainable, lr=lr, momentum=0.9)  #! also
        self.history = defaultdict(list)

    def step(self, load, phase, actual):
        self.model.train()
        loss = self.model.pinball(self.model(load, phase), actual)
        self.optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.trainable, self.max_norm)  #! also
        self.optimizer.step()
        self.history["loss"].append(loss.item())
        self.history["norm"].append(float(norm))

    @torch.no_grad()
    def coverage(self, load, phase, actual):
        self.model.eval()
        below = actual.unsqueeze(-1) <= self.model(load, phase)
        return below.float().mean(0).tolist()


torch.manual_seed(51)
dataset = HouseholdLoad(hours=1500, window=24)
trainer = ForecastTrainer(QuantileLSTM(channels=4, hidden=16, quantiles=[0.1, 0.5, 0.9]))
for step in range(80):
    trainer.step(*dataset.sample(64))
    if step % 20 == 19:
        recent = trainer.history["loss"][-20:]
        print(f"step {step + 1} pinball {sum(recent) / 20:.3f}")
print("coverage", [round(value, 2) for value in trainer.coverage(*dataset.sample(256))])
