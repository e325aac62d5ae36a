import torch
import torch.nn as nn
from torch.func import functional_call


class Learner(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 1))
        self.log_lr = nn.Parameter(torch.tensor(-3.0))

    def adapt(self, x, y, steps):
        fast = dict(self.net.named_parameters())
        for _ in range(steps):
            loss = (functional_call(self.net, fast, (x,)) - y).square().mean()
            grads = torch.autograd.grad(loss, tuple(fast.values()), create_graph=True)
            fast = {n: p - self.log_lr.exp() * g for (n, p), g in zip(fast.items(), grads)}
        return fast

    def query_loss(self, task):
        (xs, ys), (xq, yq) = task
        fast = self.adapt(xs, ys, steps=2)
        return (functional_call(self.net, fast, (xq,)) - yq).square().mean()


def task():
    a, b = torch.rand(2) * 2
    x = torch.randn(16, 1)
    y = a * torch.sin(2 * x + b)
    return (x[:8], y[:8]), (x[8:], y[8:])


torch.manual_seed(118)
learner = Learner()
outer = torch.optim.Adam(learner.parameters(), lr=3e-3)
for it in range(8):
    outer.zero_grad()
    loss = torch.stack([learner.query_loss(task()) for _ in range(4)]).mean()
    loss.backward()
    outer.step()
    print(it, loss.item(), learner.log_lr.exp().item())
