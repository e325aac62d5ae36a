# /// case
# title = "A column of predictions minus a row of pressures"
# category = "loss"
# kind = "broadcast-in-residual"
# kinds_also_ok = ["shape-mismatch-broadcast", "column-minus-row"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["predicted", "pressure", "residual"]
# symptom = "the residual is a square matrix of each prediction against each pressure"
# symptom_check = "residual.ndim == 2 and residual.shape[0] == residual.shape[1]"
# cause = "Shapes [32, 1] and [32] are broadcast to [32, 32]."
# fix = "squeeze the last dimension of the predictions"
# ///
from typing import NamedTuple

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Settings(NamedTuple):
    width: int = 32
    batch: int = 32
    epochs: int = 4
    lr: float = 5e-3
    sigma: float = 0.05


def antoine(temperature):
    a, b, c = 8.07, 1730.6, 233.4
    return (a - b / (c + temperature)) / 3


def build(width):
    return nn.Sequential(nn.Linear(1, width), nn.Softplus(), nn.Linear(width, width), nn.Softplus(), nn.Linear(width, 1))


def misfit(model, temperature, pressure, sigma):
    predicted = model(temperature / 100)  #- here
#+     predicted = model(temperature / 100).squeeze(-1)
    return (predicted - pressure) / sigma  #! here


def fit(settings):
    temperature = 100 * torch.rand(160, 1)
    pressure = antoine(temperature[:, 0]) + settings.sigma * torch.randn(160)
    loader = DataLoader(TensorDataset(temperature, pressure), settings.batch, shuffle=True)
    model = build(settings.width)
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.lr)
    for epoch in range(settings.epochs):
        for t, p in loader:
            residual = misfit(model, t, p, settings.sigma)  #! also
            loss = 0.5 * residual.square().mean()  #! also
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: chi2/2 {loss.item():.3f}")
    return model, residual.detach()


torch.manual_seed(41)
model, residual = fit(Settings())
