# /// case
# title = "Times in seconds go into a tanh layer"
# category = "scale"
# kind = "inputs-saturate-tanh"
# kinds_also_ok = ["unnormalised-inputs", "vanishing-gradient", "saturated-activation"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["t", "tanh", "first"]
# symptom = "the first layer is saturated, its gradient is zero or nearly so"
# symptom_check = "model.first.weight.grad.abs().max().item() == 0.0"
# cause = "Values of up to 86400 put every tanh at plus or minus one, where its derivative vanishes."
# fix = "divide by the span"
# ///
import torch
from torch import nn


class TideGauge:
    def __init__(self, interval=600.0, noise=0.02):
        self.times = torch.arange(1, 145) * interval  #! also
        day = 2 * torch.pi * self.times / 86400
        self.levels = 0.6 * torch.sin(2 * day) + 0.2 * torch.cos(day) + noise * torch.randn(144)

    def batches(self, size):
        for rows in torch.randperm(len(self.times)).split(size):
            yield self.times[rows], self.levels[rows]


class Interpolator(nn.Module):
    def __init__(self, width, span):
        super().__init__()
        self.span = span
        self.first = nn.Linear(1, width)
        self.second = nn.Linear(width, width)
        self.last = nn.Linear(width, 1)

    def forward(self, t):
        t = t.unsqueeze(-1)  #- here
#+         t = t.unsqueeze(-1) / self.span
        h = torch.tanh(self.first(t))  #! here
        return self.last(torch.tanh(self.second(h))).squeeze(-1)


def train(model, gauge, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(epochs):
        total = 0.0
        for t, level in gauge.batches(36):
            loss = nn.functional.mse_loss(model(t), level)
            optimizer.zero_grad()
            loss.backward()  #! also
            optimizer.step()
            total += loss.item() / 4
        print(f"epoch {epoch} mse {total:.4f}")


torch.manual_seed(59)
gauge = TideGauge()
model = Interpolator(24, span=86400.0)
train(model, gauge, 6)
