# /// case
# title = "Mixup draws two permutations for inputs and labels"
# category = "data"
# kind = "labels-misaligned"
# severity = "warning"
# names = ["mixup", "perm", "randperm"]
# difficulty = "hard"
# symptom = "Training loss stays high although gradients are healthy; silent."
# symptom_check = "sum(curve[-5:]) / 5 > 0.2"
# cause = "The partner images and the partner labels are drawn with two different random permutations."
# fix = "Use one permutation for both."
# evidence = [{ url = "https://github.com/xudonmao/VMT/issues/1" }, { url = "https://github.com/mlcommons/GaNDLF/pull/870" }]
# ///
"""Image classification with mixup and soft targets."""
import torch
import torch.nn.functional as F
from torch import nn


class Mixup:
    def __init__(self, alpha, classes):
        self.beta = torch.distributions.Beta(alpha, alpha)
        self.classes = classes

    def __call__(self, x, y):
        lam = self.beta.sample()
        target = F.one_hot(y, self.classes).float()
        perm = torch.randperm(len(x))  #! here
        x = lam * x + (1 - lam) * x[perm]  #! here
        target = lam * target + (1 - lam) * target[torch.randperm(len(x))]  #- here
#+         target = lam * target + (1 - lam) * target[perm]
        return x, target


class SmallCNN(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1), nn.ReLU(), nn.AdaptiveMaxPool2d(2), nn.Flatten(),
        )
        self.classifier = nn.Linear(96, classes)

    def forward(self, x):
        return self.classifier(self.features(x))


def bars(n):
    y = torch.randint(0, 4, (n,))
    x = 0.2 * torch.randn(n, 1, 8, 8)
    for i, c in enumerate(y.tolist()):
        x[i, 0, 2 * c] += 2.0
    return x, y


def soft_cross_entropy(logits, target):
    return -(target * F.log_softmax(logits, -1)).sum(-1).mean()


def train(steps=40, seed=0):
    torch.manual_seed(seed)
    model, mixup = SmallCNN(4), Mixup(1.0, 4)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    curve = []
    for _ in range(steps):
        x, target = mixup(*bars(64))  #! also
        loss = soft_cross_entropy(model(x), target)
        excess = loss + torch.special.xlogy(target, target).sum(-1).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        curve.append(excess.item())
    return model, curve


model, curve = train()
print("excess loss over the target entropy:", curve[0], "->", sum(curve[-5:]) / 5)
