import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class PhonemeProbe(nn.Module):
    def __init__(self, bins=10, width=24, phones=6):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(bins, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, phones))

    def forward(self, x):
        return self.net(x)


class Language:
    shared = torch.randn(6, 10, generator=torch.Generator().manual_seed(1))

    def __init__(self, generator):
        self.offset = 0.6 * torch.randn(10, generator=generator)
        self.generator = generator

    def shots(self, count):
        labels = torch.randint(0, 6, (count,), generator=self.generator)
        noise = 0.4 * torch.randn(count, 10, generator=self.generator)
        return self.shared[labels] + self.offset + noise, labels


def adapt(model, language, steps, lr):
    learner = copy.deepcopy(model)
    for _ in range(steps):
        x, y = language.shots(12)
        gradients = torch.autograd.grad(F.cross_entropy(learner(x), y), list(learner.parameters()))
        with torch.no_grad():
            for p, g in zip(learner.parameters(), gradients):
                p.sub_(lr * g)
    return learner


def outer_step(model, optimizer, languages, inner_steps=3, inner_lr=0.2):
    optimizer.zero_grad()
    total = 0.0
    for language in languages:
        learner = adapt(model, language, inner_steps, inner_lr)
        x, y = language.shots(24)
        loss = F.cross_entropy(learner(x), y)
        gradients = torch.autograd.grad(loss, list(learner.parameters()))
        for p, g in zip(model.parameters(), gradients):
            p.grad = g / len(languages) if p.grad is None else p.grad + g / len(languages)
        total += loss.item() / len(languages)
    optimizer.step()
    return total


torch.manual_seed(60)
generator = torch.Generator().manual_seed(61)
model = PhonemeProbe()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for iteration in range(40):
    languages = [Language(generator) for _ in range(4)]
    loss = outer_step(model, optimizer, languages)
    if iteration % 10 == 9:
        print(iteration, round(loss, 4))
