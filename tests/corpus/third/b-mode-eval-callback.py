# /// case
# title = "Validation callback leaves the model in eval mode"
# category = "train-eval-mode"
# kind = "training-in-eval-mode"
# severity = "warning"
# names = ["model", "eval", "validate"]
# difficulty = "medium"
# symptom = "From the second epoch on there is no dropout and batch norm statistics are frozen; silent."
# symptom_check = "int(model[1].num_batches_tracked) < 24"
# cause = "The validation callback calls model.eval() and nobody switches back; train() is called once before the epoch loop."
# fix = "Call model.train() at the start of every epoch."
# evidence = [{ url = "https://github.com/ermongroup/ncsn/issues/2" }, { url = "https://github.com/wkentaro/pytorch-fcn/issues/57" }, { url = "https://github.com/tk-rusch/coRNN/issues/1" }]
# ///
"""Event-driven trainer for a small convolutional regressor."""
from collections import defaultdict

import torch
import torch.nn.functional as F
from torch import nn


class Engine:
    """Minimal event engine."""

    def __init__(self):
        self.handlers = defaultdict(list)
        self.state = {}

    def on(self, event):
        def deco(fn):
            self.handlers[event].append(fn)
            return fn

        return deco

    def fire(self, event):
        for fn in self.handlers[event]:
            fn(self)

    def run(self, step_fn, batches, epochs):
        self.fire("started")
        for epoch in range(epochs):
            self.state["epoch"] = epoch
            self.fire("epoch_started")
            for batch in batches():
                self.state["loss"] = step_fn(batch)
            self.fire("epoch_completed")
        self.fire("completed")


def build_model():
    return nn.Sequential(
        nn.Conv1d(1, 8, 5, padding=2, bias=False), nn.BatchNorm1d(8), nn.ReLU(),
        nn.Conv1d(8, 8, 5, padding=2, bias=False), nn.BatchNorm1d(8), nn.ReLU(),
        nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Dropout(0.3), nn.Linear(32, 1),
    )


def waves(n, gen):
    f = torch.rand(n, 1, 1, generator=gen) * 4 + 1
    t = torch.linspace(0, 1, 32)
    return torch.sin(2 * torch.pi * f * t) + 0.1 * torch.randn(n, 1, 32, generator=gen), f.view(n, 1)


torch.manual_seed(0)
gen = torch.Generator().manual_seed(0)
x, y = waves(192, gen)
xv, yv = waves(64, gen)
model = build_model()
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
engine = Engine()
val_losses = []


def batches():
    perm = torch.randperm(len(x), generator=gen)
    for idx in perm.split(32):
        yield x[idx], y[idx]


def train_step(batch):
    xb, yb = batch
    loss = F.mse_loss(model(xb), yb)  #! here
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item()


@engine.on("started")  #- here
#+ @engine.on("epoch_started")
def set_train(e):
    model.train()  #! here


@engine.on("epoch_completed")
def validate(e):
    model.eval()  #! here
    with torch.no_grad():
        val_losses.append(F.mse_loss(model(xv), yv).item())  #! also


@engine.on("completed")
def report(e):
    print("tracked batches", int(model[1].num_batches_tracked), "val", val_losses)


engine.run(train_step, batches, epochs=4)
