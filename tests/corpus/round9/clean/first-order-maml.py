import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call


def few_shot_task(classes=3, shots=4, queries=6, dim=5):
    centres = 1.5 * torch.randn(classes, dim)
    labels = torch.arange(classes)
    support, query = labels.repeat(shots), labels.repeat(queries)
    return (centres[support] + torch.randn(len(support), dim), support), (centres[query] + torch.randn(len(query), dim), query)


class FirstOrderMAML:
    def __init__(self, model, inner_lr=0.1, inner_steps=3, outer_lr=5e-3):
        self.model = model
        self.inner_lr, self.inner_steps = inner_lr, inner_steps
        self.outer = torch.optim.Adam(model.parameters(), lr=outer_lr)

    def loss(self, weights, batch):
        x, y = batch
        return F.cross_entropy(functional_call(self.model, weights, (x,)), y)

    def adapt(self, support):
        weights = {name: p.detach().clone().requires_grad_(True) for name, p in self.model.named_parameters()}
        for _ in range(self.inner_steps):
            grads = torch.autograd.grad(self.loss(weights, support), list(weights.values()))
            weights = {name: (w - self.inner_lr * g).detach().requires_grad_(True) for (name, w), g in zip(weights.items(), grads)}
        return weights

    def meta_step(self, tasks):
        self.outer.zero_grad(set_to_none=False)
        for parameter in self.model.parameters():
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        total = 0.0
        for support, query in tasks:
            weights = self.adapt(support)
            loss = self.loss(weights, query)
            for parameter, grad in zip(self.model.parameters(), torch.autograd.grad(loss, list(weights.values()))):
                parameter.grad.add_(grad, alpha=1 / len(tasks))
            total += loss.item() / len(tasks)
        self.outer.step()
        return total


torch.manual_seed(113)
meta = FirstOrderMAML(nn.Sequential(nn.Linear(5, 24), nn.ReLU(), nn.Linear(24, 3)))
curve = [meta.meta_step([few_shot_task() for _ in range(3)]) for _ in range(8)]
print(" ".join(f"{value:.3f}" for value in curve))
