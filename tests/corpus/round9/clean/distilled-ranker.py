import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.GELU()]
    return nn.Sequential(*layers[:-1])


class Distiller(nn.Module):
    def __init__(self, teacher, student, temperature=3.0, mix=0.7):
        super().__init__()
        self.student = student
        self.teacher = copy.deepcopy(teacher).eval().requires_grad_(False)
        self.temperature, self.mix = temperature, mix

    @torch.no_grad()
    def soft_targets(self, x):
        return (self.teacher(x) / self.temperature).log_softmax(-1)

    def forward(self, x, y):
        logits = self.student(x)
        soft = F.kl_div(
            (logits / self.temperature).log_softmax(-1), self.soft_targets(x), reduction="batchmean", log_target=True
        )
        return self.mix * self.temperature ** 2 * soft + (1 - self.mix) * F.cross_entropy(logits, y)


def examples(count):
    x = torch.randn(count, 12)
    return x, (x[:, :4] + 0.5 * x[:, 4:8]).argmax(1)


def train(parameters, loss_of, steps, lr):
    optimizer = torch.optim.Adam(parameters, lr=lr)
    for _ in range(steps):
        loss = loss_of(*examples(96))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


torch.manual_seed(5)
teacher, student = mlp(12, 64, 64, 4), mlp(12, 10, 4)
first = train(teacher.parameters(), lambda x, y: F.cross_entropy(teacher(x), y), 15, 1e-2)
distiller = Distiller(teacher, student)
second = train(distiller.student.parameters(), distiller, 15, 2e-2)
print(f"teacher {first:.3f} distillation {second:.3f}")
