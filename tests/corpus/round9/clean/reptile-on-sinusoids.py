import copy

import torch
from torch import nn


class Sinusoids:
    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def uniform(self, *shape):
        return torch.rand(*shape, generator=self.generator)

    def task(self):
        amplitude, phase = 0.5 + 2 * self.uniform(1), 3.14 * self.uniform(1)
        x = 8 * self.uniform(24, 1) - 4
        return x, amplitude * torch.sin(x + phase)


def adapt(model, x, y, steps=3, lr=0.02):
    learner = copy.deepcopy(model)
    inner = torch.optim.SGD(learner.parameters(), lr=lr)
    for rows in torch.randperm(len(x)).chunk(steps):
        inner.zero_grad()
        (learner(x[rows]) - y[rows]).square().mean().backward()
        inner.step()
    return learner


@torch.no_grad()
def interpolate(model, learners, rate):
    for name, weight in model.named_parameters():
        mean = torch.stack([learner.get_parameter(name) for learner in learners]).mean(0)
        weight.lerp_(mean, rate)


torch.manual_seed(101)
tasks = Sinusoids(seed=101)
model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
rounds = 5
for number in range(rounds):
    learners = [adapt(model, *tasks.task()) for _ in range(2)]
    interpolate(model, learners, rate=0.5 * (1 - number / rounds))
x, y = tasks.task()
before, after = ((m(x) - y).square().mean().item() for m in (model, adapt(model, x, y)))
print(f"before {before:.3f} after {after:.3f}")
