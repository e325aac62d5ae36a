# /// case
# title = "Statistics of a frozen backbone go on changing"
# category = "mode"
# kind = "frozen-batchnorm-updates"
# kinds_also_ok = ["batchnorm-in-frozen-part"]
# severity = "warning"
# names = ["deactivate_requires_grad", "train", "running_mean"]
# symptom = "the features of the frozen backbone drift"
# symptom_check = "not torch.equal(before, classifier.backbone[1].running_mean)"
# cause = "requires_grad=False does not stop batch norm's running statistics in training mode"
# fix = "keep the backbone in eval mode"
# evidence = [
#     { url = "https://github.com/lightly-ai/lightly/issues/1438", title = "deactivate_requires_grad does not fix the model!" },
#     { url = "https://github.com/jfzhang95/pytorch-deeplab-xception/issues/140", title = "Batch norm not freezed in train?" },
# ]
# ///
import torch
import torch.nn as nn

torch.manual_seed(43)


def deactivate_requires_grad(params):
    for param in params:
        param.requires_grad = False


class Classifier(nn.Module):
    """A linear probe on a backbone from self-supervised training."""

    def __init__(self, backbone, dim, classes):
        super().__init__()
        self.backbone = backbone
        deactivate_requires_grad(backbone.parameters())  #! also
        self.fc = nn.Linear(dim, classes)
#+
#+     def train(self, mode=True):
#+         super().train(mode)
#+         self.backbone.eval()
#+         return self

    def forward(self, x):
        return self.fc(self.backbone(x).flatten(1))


backbone = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(2))
with torch.no_grad():  # as if it came with its statistics
    for _ in range(20):
        backbone(torch.randn(16, 1, 8, 8))
classifier = Classifier(backbone, 32, 4)
before = backbone[1].running_mean.clone()
optimizer = torch.optim.SGD(classifier.fc.parameters(), lr=0.1)
for epoch in range(3):
    classifier.train()  #! here
    for _ in range(4):
        x, y = torch.randn(16, 1, 8, 8) * 1.5 + 1, torch.randint(0, 4, (16,))
        loss = nn.functional.cross_entropy(classifier(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(loss.item())
