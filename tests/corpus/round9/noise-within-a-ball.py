# /// case
# title = "The perturbation of an attack is not a leaf any more after its first update"
# category = "leaf"
# kind = "perturbation-becomes-non-leaf"
# kinds_also_ok = ["grad-of-non-leaf", "missing-detach", "grad-is-none"]
# severity = "error"
# names = ["delta", "grad", "pgd"]
# symptom = "the second step of the attack finds delta.grad to be None"
# raises = "AttributeError"
# raises_message = "'NoneType' object has no attribute 'sign'"
# cause = "The update makes delta the result of an operation with a graph; backward fills .grad of leaves only."
# fix = ".detach().requires_grad_(True) after the update"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Linear(54, 3)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


def pgd(model, images, labels, radius=0.1, rate=0.04, steps=4):
    delta = torch.empty_like(images).uniform_(-radius, radius).requires_grad_(True)  #! also
    for _ in range(steps):
        loss = F.cross_entropy(model(images + delta), labels)
        loss.backward()  #! also
        delta = (delta + rate * delta.grad.sign()).clamp(-radius, radius)  #- here
#+         delta = (delta + rate * delta.grad.sign()).clamp(-radius, radius).detach().requires_grad_(True)
    return delta.detach()


def batches(count, size=24):
    for _ in range(count):
        labels = torch.randint(0, 3, (size,))
        images = 0.2 * torch.rand(size, 1, 8, 8)
        for image, label in zip(images, labels):
            image[0, :, 2 * label:2 * label + 3] += 0.6
        yield images, labels


torch.manual_seed(23)
model = Classifier()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step, (images, labels) in enumerate(batches(8)):
    delta = pgd(model, images, labels)
    optimizer.zero_grad()
    loss = F.cross_entropy(model(images + delta), labels)
    loss.backward()
    optimizer.step()
    print(f"{step}: robust loss {loss.item():.3f}")
