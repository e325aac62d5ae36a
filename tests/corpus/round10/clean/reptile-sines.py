import copy
import math
import random

import torch
from torch import nn
import torch.nn.functional as F


def sine_task():
    amplitude, phase = random.uniform(0.5, 2.0), random.uniform(0, math.pi)

    def draw(n):
        x = torch.rand(n, 1) * 10 - 5
        return x, amplitude * torch.sin(x + phase)

    return draw


def adapt(model, draw, steps, lr):
    learner = copy.deepcopy(model)
    inner = torch.optim.SGD(learner.parameters(), lr=lr)
    for _ in range(steps):
        x, y = draw(20)
        loss = F.mse_loss(learner(x), y)
        inner.zero_grad()
        loss.backward()
        inner.step()
    return learner


@torch.no_grad()
def move_towards(model, learner, step_size):
    for slow, fast in zip(model.parameters(), learner.parameters()):
        slow += step_size * (fast - slow)


def meta_loss(model, tasks, steps, lr):
    total = 0.0
    for draw in tasks:
        learner = adapt(model, draw, steps, lr)
        with torch.no_grad():
            x, y = draw(100)
            total += F.mse_loss(learner(x), y).item()
    return total / len(tasks)


random.seed(52)
torch.manual_seed(52)
model = nn.Sequential(nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1))
probe = [sine_task() for _ in range(10)]
before = meta_loss(model, probe, steps=8, lr=0.02)
META, BATCH = 60, 2
for iteration in range(META):
    rate = 1.0 * (1 - iteration / META)
    for _ in range(BATCH):
        move_towards(model, adapt(model, sine_task(), steps=8, lr=0.02), rate / BATCH)
after = meta_loss(model, probe, steps=8, lr=0.02)
print(f"after 8 steps: {before:.3f} -> {after:.3f}")
