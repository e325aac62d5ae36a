import math
from typing import Iterator

import torch
from torch import nn


class LogPosterior(nn.Module):
    """Regression network with a Gaussian prior; returns the negative log posterior per observation."""

    def __init__(self, hidden, prior, noise):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, hidden), nn.Tanh(), nn.Linear(hidden, 1))
        self.prior, self.noise = prior, noise

    def forward(self, x, y, total):
        misfit = (self.net(x) - y).square().sum() / (2 * self.noise ** 2)
        prior = sum(p.square().sum() for p in self.net.parameters()) / (2 * self.prior ** 2)
        return misfit * total / len(x) + prior


class PreconditionedLangevin:
    """RMSprop-preconditioned stochastic gradient Langevin dynamics, without an optimizer class."""

    def __init__(self, parameters, step, decay=0.99, floor=1e-3):
        self.parameters = list(parameters)
        self.step_size, self.decay, self.floor = step, decay, floor
        self.second = [torch.zeros_like(p) for p in self.parameters]

    def zero(self):
        for p in self.parameters:
            p.grad = None

    @torch.no_grad()
    def step(self, temperature):
        for p, v in zip(self.parameters, self.second):
            v.mul_(self.decay).addcmul_(p.grad, p.grad, value=1 - self.decay)
            scale = self.step_size / (v.sqrt() + self.floor)
            p.sub_(0.5 * scale * p.grad)
            p.add_(torch.randn_like(p) * (temperature * scale).sqrt())


def chain(posterior, sampler, x, y, steps, burn_in, thin, batch=20) -> Iterator[dict]:
    for step in range(steps):
        index = torch.randint(len(x), (batch,))
        sampler.zero()
        posterior(x[index], y[index], len(x)).backward()
        sampler.step(temperature=min(1.0, step / burn_in))
        if step >= burn_in and step % thin == 0:
            yield {name: p.detach().clone() for name, p in posterior.net.named_parameters()}


def gap_data(count):
    x = torch.cat([torch.rand(count // 2, 1) * 1.2 - 2, torch.rand(count // 2, 1) * 1.2 + 0.8])
    return x, torch.sin(2 * x) + 0.1 * torch.randn_like(x)


torch.manual_seed(77)
x, y = gap_data(80)
posterior = LogPosterior(hidden=24, prior=1.5, noise=0.1)
sampler = PreconditionedLangevin(posterior.net.parameters(), step=2e-3)
draws = list(chain(posterior, sampler, x, y, steps=1600, burn_in=700, thin=30))
query = torch.linspace(-3, 3, 61)[:, None]
stacked = {name: torch.stack([d[name] for d in draws]) for name in draws[0]}
with torch.no_grad():
    curves = torch.func.vmap(lambda weights: torch.func.functional_call(posterior.net, weights, (query,)))(stacked)
mean, spread = curves.mean(0).squeeze(1), curves.std(0).squeeze(1)
seen = (mean - torch.sin(2 * query.squeeze(1)))[(query.squeeze(1).abs() > 0.9) & (query.squeeze(1).abs() < 1.9)]
print(f"{len(draws)} draws, rms where there are data {math.sqrt(seen.square().mean().item()):.3f}")
print(f"spread at 0: {spread[30].item():.3f}, at 3: {spread[60].item():.3f}, at 1.4: {spread[44].item():.3f}")
