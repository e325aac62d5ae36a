# /// case
# title = "PGD perturbation becomes a non-leaf after its first update"
# category = "leaf-nonleaf"
# kind = "grad-read-on-nonleaf"
# severity = "error"
# names = ["delta"]
# difficulty = "medium"
# symptom = "AttributeError: 'NoneType' object has no attribute 'sign' in the second attack step"
# raises = "AttributeError"
# raises_message = "'NoneType' object has no attribute 'sign'"
# warns = "The .grad attribute of a Tensor that is not a leaf"
# cause = "delta is re-assigned to the result of a differentiable expression of itself; from the second step on it is a non-leaf and backward() does not fill its .grad"
# fix = "detach the updated perturbation and mark it as requiring grad again"
# evidence = [{ url = "https://github.com/BorealisAI/advertorch/issues/49" }, { url = "https://github.com/pytorch/pytorch/issues/6991" }]
# ///
"""Adversarial training of a small image classifier with multi-step PGD."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class AttackConfig:
    eps: float = 0.3
    alpha: float = 0.1
    steps: int = 4


class ConvNet(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
        )
        self.head = nn.Linear(64, classes)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


def pgd(model, x, y, cfg):
    delta = torch.empty_like(x).uniform_(-cfg.eps, cfg.eps)
    delta.requires_grad_(True)
    for _ in range(cfg.steps):
        loss = F.cross_entropy(model(x + delta), y)
        loss.backward()
        step = cfg.alpha * delta.grad.sign()  #! also
        delta = (delta + step).clamp(-cfg.eps, cfg.eps)  #- here
#+         delta = (delta.detach() + step).clamp(-cfg.eps, cfg.eps).requires_grad_(True)
    return (x + delta).detach()


def train(epochs=2, batch=16):
    torch.manual_seed(0)
    images = torch.rand(64, 1, 8, 8)
    labels = torch.randint(0, 4, (64,))
    model, cfg = ConvNet(), AttackConfig()
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for _ in range(epochs):
        for i in range(0, 64, batch):
            x, y = images[i:i + batch], labels[i:i + batch]
            x_adv = pgd(model, x, y, cfg)
            opt.zero_grad()
            loss = 0.5 * F.cross_entropy(model(x), y) + 0.5 * F.cross_entropy(model(x_adv), y)
            loss.backward()
            opt.step()
    return model


model = train()
