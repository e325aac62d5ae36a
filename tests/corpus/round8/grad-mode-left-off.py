# /// case
# title = "Evaluation switches gradient mode off globally"
# category = "mode"
# kind = "grad-mode-not-restored"
# kinds_also_ok = ["set-grad-enabled-false", "no-grad-in-training"]
# severity = "error"
# names = ["set_grad_enabled", "evaluate"]
# symptom = "the next epoch's backward raises"
# raises = "RuntimeError"
# raises_message = "element 0 of tensors does not require grad"
# cause = "torch.set_grad_enabled(False) as a call holds until it is undone, and evaluate() does not undo it."
# fix = "use it as a context manager"
# ///
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Options:
    epochs: int = 3
    batch: int = 16
    lr: float = 2e-3
    forecast: int = 4
    history: int = 12


class Mixer(nn.Module):
    def __init__(self, o: Options, channels: int):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(o.history, o.history), nn.ReLU(), nn.Dropout(0.1))
        self.feature = nn.Sequential(nn.Linear(channels, 16), nn.ReLU(), nn.Linear(16, channels))
        self.out = nn.Linear(o.history, o.forecast)

    def forward(self, x):
        x = x + self.time(x.transpose(1, 2)).transpose(1, 2)
        x = x + self.feature(x)
        return self.out(x.transpose(1, 2)).transpose(1, 2)


def evaluate(model, past, future):
    was_training = model.training
    model.eval()
    torch.set_grad_enabled(False)  #- here
    error = (model(past) - future).abs().mean().item()  #-
#+     with torch.set_grad_enabled(False):
#+         error = (model(past) - future).abs().mean().item()
    model.train(was_training)
    return error  #! here


def slices(series, o):
    width = o.history + o.forecast
    pieces = series.unfold(0, width, 2).transpose(1, 2)
    return pieces[:, :o.history], pieces[:, o.history:]


torch.manual_seed(72)
o = Options()
t = torch.arange(200.0)[:, None]
series = torch.sin(t / torch.tensor([3.0, 5.0, 8.0])) + 0.1 * torch.randn(200, 3)
past, future = slices(series, o)
model = Mixer(o, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=o.lr)
for epoch in range(o.epochs):
    for rows in torch.randperm(72).split(o.batch):
        loss = nn.functional.mse_loss(model(past[rows]), future[rows])
        optimizer.zero_grad()
        loss.backward()  #! also
        optimizer.step()
    print(epoch, evaluate(model, past[72:], future[72:]))  #! also
