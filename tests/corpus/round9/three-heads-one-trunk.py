# /// case
# title = "Gradients are cleared for each pretext task, though one step is made for all of them"
# category = "accumulation"
# kind = "zero-grad-inside-task-loop"
# kinds_also_ok = ["zero-grad-wipes-accumulated-gradients", "only-last-loss-counts", "gradients-cleared-too-early"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["zero_grad", "optimizer", "heads"]
# symptom = "the heads of all tasks but the last never move"
# symptom_check = "model.heads['rotation'].weight not in optimizer.state and model.heads['flip'].weight not in optimizer.state"
# cause = "zero_grad in the loop over tasks throws away what the earlier tasks have added; the step sees the last one only."
# fix = "zero_grad before the loop over tasks"
# ///
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
    images = draw(32)  #! here
#+     optimizer.zero_grad()
    for name, (transform, _) in PRETEXT.items():  #! here
        inputs, labels = transform(images)
        loss = F.cross_entropy(model(inputs, name), labels)
        optimizer.zero_grad()  #- here
        loss.backward()  #! also
        report[name] = round(loss.item(), 3)
    optimizer.step()  #! also
print(report)
