import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class FirstOrderMeta:
    """First-order MAML: the adapted copy's gradients are the meta-gradients."""

    def __init__(self, net, inner_lr=0.1, inner_steps=2, lr=1e-2):
        self.net = net
        self.inner_lr, self.inner_steps = inner_lr, inner_steps
        self.optimizer = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)

    def adapt(self, x, y):
        learner = copy.deepcopy(self.net)
        for _ in range(self.inner_steps):
            grads = torch.autograd.grad(F.cross_entropy(learner(x), y), list(learner.parameters()))
            with torch.no_grad():
                for p, g in zip(learner.parameters(), grads):
                    p.sub_(self.inner_lr * g)
        return learner

    def step(self, episodes):
        self.optimizer.zero_grad()
        total = 0.0
        for (x, y), (qx, qy) in episodes:
            learner = self.adapt(x, y)
            loss = F.cross_entropy(learner(qx), qy)
            grads = torch.autograd.grad(loss, list(learner.parameters()))
            for p, g in zip(self.net.parameters(), grads):
                p.grad = g / len(episodes) if p.grad is None else p.grad + g / len(episodes)
            total += loss.item()
        self.optimizer.step()
        return total / len(episodes)


def episode(ways=3, shots=5):
    centres = torch.randn(ways, 6)
    y = torch.arange(ways).repeat(2 * shots)
    x = centres[y] + 0.4 * torch.randn(len(y), 6)
    half = ways * shots
    return (x[:half], y[:half]), (x[half:], y[half:])


torch.manual_seed(10)
learner = FirstOrderMeta(nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 3)))
for iteration in range(8):
    print(iteration, learner.step([episode() for _ in range(4)]))
