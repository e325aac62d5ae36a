# /// case
# title = "The freezing loop sets an attribute with a misspelt name"
# category = "flags"
# kind = "misspelt-requires-grad"
# kinds_also_ok = ["freeze-without-effect", "attribute-typo"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["require_grad", "backbone"]
# symptom = "the backbone stays trainable and is trained"
# symptom_check = "all(p.requires_grad for p in model.backbone.parameters())"
# cause = "require_grad is no attribute of tensors"
# fix = "requires_grad"
# ///
import torch
import torch.nn as nn


class FineTuned(nn.Module):
    def __init__(self, backbone, width, classes):
        super().__init__()
        self.backbone = backbone
        self.classifier = nn.Linear(width, classes)

    def forward(self, image):
        return self.classifier(self.backbone(image))


def pretrained():
    return nn.Sequential(
        nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 12, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    )


torch.manual_seed(30)
model = FineTuned(pretrained(), 12, 4)
for param in model.backbone.parameters():
    param.require_grad = False  #- here
#+     param.requires_grad = False

optimizer = torch.optim.SGD((p for p in model.parameters() if p.requires_grad), lr=0.05, momentum=0.9)  #! also
loss_fn = nn.CrossEntropyLoss()
images, labels = torch.rand(40, 1, 12, 12), torch.randint(0, 4, (40,))
for epoch in range(3):
    for image, label in zip(images.split(10), labels.split(10)):
        loss = loss_fn(model(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
