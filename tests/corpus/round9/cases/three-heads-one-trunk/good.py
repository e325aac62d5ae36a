import torch
import torch.nn as nn
import torch.nn.functional as F


class PretextNet(nn.Module):
    def __init__(self, tasks):
        super().__init__()
        self.trunk = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten())
        self.heads = nn.ModuleDict({name: nn.Linear(32, classes) for name, classes in tasks.items()})

    def forward(self, images, task):
        return self.heads[task](self.trunk(images))


def rotation(images):
    label = torch.randint(0, 4, (len(images),))
    return torch.stack([torch.rot90(image, int(k), (1, 2)) for image, k in zip(images, label)]), label


def flip(images):
    label = torch.randint(0, 2, (len(images),))
    return torch.where(label.view(-1, 1, 1, 1) == 1, images.flip(3), images), label


def contrast(images):
    label = torch.randint(0, 3, (len(images),))
    return images * torch.tensor([0.5, 1.0, 2.0])[label].view(-1, 1, 1, 1), label


def draw(count):
    ramp = torch.linspace(-1, 1, 8)
    return (ramp.view(1, 1, 1, 8) + 0.5 * ramp.view(1, 1, 8, 1)).expand(count, 1, 8, 8) + 0.1 * torch.randn(count, 1, 8, 8)


PRETEXT = {"rotation": (rotation, 4), "flip": (flip, 2), "contrast": (contrast, 3)}
torch.manual_seed(13)
model = PretextNet({name: classes for name, (_, classes) in PRETEXT.items()})
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for step in range(12):
    report = {}
    images = draw(32)
    optimizer.zero_grad()
    for name, (transform, _) in PRETEXT.items():
        inputs, labels = transform(images)
        loss = F.cross_entropy(model(inputs, name), labels)
        loss.backward()
        report[name] = round(loss.item(), 3)
    optimizer.step()
print(report)
