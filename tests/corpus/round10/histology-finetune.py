# /// case
# title = "requires_grad is set as a plain attribute of a module, which freezes nothing"
# category = "flags"
# kind = "requires-grad-set-on-module"
# kinds_also_ok = ["freeze-has-no-effect", "backbone-not-frozen", "requires-grad-attribute-instead-of-method"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["backbone", "requires_grad"]
# symptom = "the pretrained backbone is trained along with the head"
# symptom_check = "all(p.requires_grad and p.grad is not None and len(trainable) > 2 for p in model.backbone.parameters())"
# cause = "nn.Module has no such property: the assignment creates an attribute and the parameters stay trainable."
# fix = "requires_grad_(False)"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class PatchNet(nn.Module):
    def __init__(self, classes, width=12):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, width, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride=2, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        )
        self.classifier = nn.Linear(4 * width, classes)

    def forward(self, patches):
        return self.classifier(self.backbone(patches))


def stained(n, classes, strength):
    labels = torch.randint(0, classes, (n,))
    tint = torch.eye(3)[labels % 3] * (1 + labels // 3)[:, None]
    return torch.randn(n, 3, 16, 16) * 0.5 + strength * tint[:, :, None, None], labels


def run(model, optimizer, patches, labels, epochs, batch=32):
    losses = []
    for _ in range(epochs):
        for rows in torch.randperm(len(labels)).split(batch):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(patches[rows]), labels[rows])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


torch.manual_seed(2)
model = PatchNet(classes=6)
source, tissue = stained(192, 6, 0.6)
pretrain = run(model, torch.optim.Adam(model.parameters(), lr=4e-3), source, tissue, epochs=4)

model.classifier = nn.Linear(model.classifier.in_features, 3)
model.backbone.requires_grad = False  #- here
#+ model.backbone.requires_grad_(False)
trainable = [p for p in model.parameters() if p.requires_grad]  #! also

target, grade = stained(96, 3, 0.4)
finetune = run(model, torch.optim.Adam(trainable, lr=1e-2), target, grade, epochs=6)
print(f"pretrain {pretrain[-1]:.3f}, finetune {finetune[0]:.3f} -> {finetune[-1]:.3f}")
