# /// case
# title = "Gradients are cleared before the attack, whose own backward passes fill them again"
# category = "accumulation"
# kind = "attack-gradients-in-update"
# kinds_also_ok = ["gradients-not-cleared", "zero-grad-before-attack", "stale-gradients", "zero-grad-in-wrong-place"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["zero_grad", "pgd", "model"]
# symptom = "every update also contains the parameter gradients of all attack steps"
# symptom_check = "sum(norms[:4]) / 4 > 2.0"
# cause = "optimizer.zero_grad() runs before pgd(), and pgd() calls backward() on the model's loss."
# fix = "clear the gradients after the attack"
# ///
import argparse

import torch
from torch import nn
import torch.nn.functional as F


def parse(argv=()):
    parser = argparse.ArgumentParser()
    parser.add_argument("--eps", type=float, default=0.15)
    parser.add_argument("--attack-steps", type=int, default=6)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--lr", type=float, default=0.05)
    return parser.parse_args(list(argv))


def digits(count, classes=4, side=8):
    prototypes = torch.rand(classes, 1, side, side, generator=torch.Generator().manual_seed(1))
    labels = torch.randint(classes, (count,))
    return (prototypes[labels] + 0.1 * torch.randn(count, 1, side, side)).clamp(0, 1), labels


def build_model():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU(),
        nn.Flatten(), nn.Linear(256, 4),
    )


def pgd(model, images, labels, eps, steps):
    delta = torch.empty_like(images).uniform_(-eps, eps).requires_grad_()
    size = 2.5 * eps / steps
    for _ in range(steps):
        loss = F.cross_entropy(model((images + delta).clamp(0, 1)), labels)
        loss.backward()  #! also
        with torch.no_grad():
            delta.add_(size * delta.grad.sign()).clamp_(-eps, eps)
        delta.grad = None
    return (images + delta.detach()).clamp(0, 1)


def robust_accuracy(model, images, labels, args):
    attacked = pgd(model, images, labels, args.eps, args.attack_steps)
    with torch.no_grad():
        return (model(attacked).argmax(1) == labels).float().mean().item()


args = parse()
torch.manual_seed(6)
train_x, train_y = digits(400)
test_x, test_y = digits(100)
model = build_model()
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
norms = []
for epoch in range(args.epochs):
    order = torch.randperm(len(train_x))
    for start in range(0, len(order), args.batch):
        index = order[start:start + args.batch]
        images, labels = train_x[index], train_y[index]
#+         attacked = pgd(model, images, labels, args.eps, args.attack_steps)
        optimizer.zero_grad()  #! here
        attacked = pgd(model, images, labels, args.eps, args.attack_steps)  #- also
        loss = F.cross_entropy(model(attacked), labels)
        loss.backward()  #! also
        norms.append(nn.utils.get_total_norm([p.grad for p in model.parameters()]).item())
        optimizer.step()  #! also
    print(f"epoch {epoch} loss {loss.item():.4f} gradient {norms[-1]:.3f}")
print("robust accuracy", robust_accuracy(model, test_x, test_y, args))
