import math

import torch
from torch import nn
import torch.nn.functional as F


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None


class DomainAdversarial(nn.Module):
    def __init__(self, inputs=6, width=20, classes=2):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(inputs, width), nn.ReLU())
        self.label = nn.Linear(width, classes)
        self.domain = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, x, strength):
        h = self.encoder(x)
        return self.label(h), self.domain(Reverse.apply(h, strength)).squeeze(1)


def domain_batch(shift, count=48):
    labels = torch.randint(0, 2, (count,))
    x = torch.randn(count, 6)
    x[:, 0] += 3.0 * labels - 1.5
    x[:, 1] += shift
    return x, labels


def ramp(progress):
    return 2 / (1 + math.exp(-10 * progress)) - 1


torch.manual_seed(131)
model = DomainAdversarial()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)
steps = 20
for step in range(steps):
    source, labels = domain_batch(-1.0)
    target, _ = domain_batch(+1.0)
    strength = ramp(step / steps)
    class_logits, source_domain = model(source, strength)
    _, target_domain = model(target, strength)
    domain_logits = torch.cat([source_domain, target_domain])
    domain_labels = torch.cat([torch.zeros(len(source)), torch.ones(len(target))])
    label_loss = F.cross_entropy(class_logits, labels)
    domain_loss = F.binary_cross_entropy_with_logits(domain_logits, domain_labels)
    optimizer.zero_grad()
    (label_loss + domain_loss).backward()
    optimizer.step()
print(f"label {label_loss.item():.3f} domain {domain_loss.item():.3f} strength {strength:.2f}")
