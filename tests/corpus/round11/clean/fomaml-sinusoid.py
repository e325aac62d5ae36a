import copy
from functools import partial

import torch
from torch import nn
import torch.nn.functional as F
from torch.func import functional_call


class Sinusoids:
    def __init__(self, generator):
        self.uniform = partial(torch.rand, generator=generator)

    def task(self, shots):
        amplitude, phase = 0.5 + 2 * self.uniform(1), 3.14 * self.uniform(1)
        x = self.uniform(2 * shots, 1) * 10 - 5
        y = amplitude * torch.sin(x + phase)
        return (x[:shots], y[:shots]), (x[shots:], y[shots:])


class FirstOrderMAML:
    """Inner steps without second derivatives; the outer gradient is taken at the adapted weights."""

    def __init__(self, model, inner_lr, inner_steps, outer_lr):
        self.model, self.inner_lr, self.inner_steps = model, inner_lr, inner_steps
        self.outer = torch.optim.Adam(model.parameters(), lr=outer_lr)

    def adapt(self, support):
        x, y = support
        fast = {name: p.detach().clone().requires_grad_() for name, p in self.model.named_parameters()}
        for _ in range(self.inner_steps):
            loss = F.mse_loss(functional_call(self.model, fast, (x,)), y)
            gradients = torch.autograd.grad(loss, list(fast.values()))
            fast = {
                name: (p - self.inner_lr * g).detach().requires_grad_()
                for (name, p), g in zip(fast.items(), gradients)
            }
        return fast

    def meta_step(self, tasks):
        totals = {name: torch.zeros_like(p) for name, p in self.model.named_parameters()}
        value = 0.0
        for support, (x, y) in tasks:
            fast = self.adapt(support)
            loss = F.mse_loss(functional_call(self.model, fast, (x,)), y)
            for name, g in zip(fast, torch.autograd.grad(loss, list(fast.values()))):
                totals[name] += g / len(tasks)
            value += loss.item() / len(tasks)
        for name, p in self.model.named_parameters():
            p.grad = totals[name]
        self.outer.step()
        return value


def baseline(model, tasks):
    with torch.no_grad():
        return sum(F.mse_loss(model(x), y).item() for _, (x, y) in tasks) / len(tasks)


torch.manual_seed(9)
family = Sinusoids(torch.Generator().manual_seed(10))
network = nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
meta = FirstOrderMAML(network, inner_lr=0.05, inner_steps=3, outer_lr=5e-3)
curve = [meta.meta_step([family.task(10) for _ in range(4)]) for _ in range(60)]
held_out = [family.task(10) for _ in range(12)]
adapted = 0.0
for support, (x, y) in held_out:
    specialist, fast = copy.deepcopy(network), meta.adapt(support)
    with torch.no_grad():
        for name, value in fast.items():
            specialist.get_parameter(name).copy_(value)
        adapted += F.mse_loss(specialist(x), y).item() / len(held_out)
print(f"meta loss {curve[0]:.3f} -> {sum(curve[-20:]) / 20:.3f}")
print(f"held out: {baseline(network, held_out):.3f} before, {adapted:.3f} after adaptation")
