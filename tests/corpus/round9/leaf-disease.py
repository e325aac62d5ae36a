# /// case
# title = "The frozen backbone's batch norms go on updating their statistics"
# category = "mode"
# kind = "frozen-batchnorm-in-train-mode"
# kinds_also_ok = ["batchnorm-statistics-drift", "frozen-backbone-not-in-eval", "running-stats-updated"]
# severity = "warning"
# names = ["model.train", "backbone", "BatchNorm2d"]
# symptom = "the running statistics of the frozen backbone drift away from the pretrained ones"
# symptom_check = "not torch.equal(model.backbone.bn1.running_mean, weights['bn1.running_mean'])"
# cause = "requires_grad=False does not stop a BatchNorm in train mode from using and updating batch statistics."
# fix = "model.backbone.eval() after model.train()"
# ///
from collections import OrderedDict

import torch
import torch.nn as nn


def make_backbone():
    return nn.Sequential(OrderedDict(
        conv1=nn.Conv2d(3, 8, 3, padding=1, bias=False),
        bn1=nn.BatchNorm2d(8),
        act1=nn.ReLU(),
        conv2=nn.Conv2d(8, 12, 3, stride=2, padding=1, bias=False),
        bn2=nn.BatchNorm2d(12),
        act2=nn.ReLU(),
        pool=nn.AdaptiveAvgPool2d(1),
        flat=nn.Flatten(),
    ))


def pretrained_weights():
    donor = make_backbone()
    with torch.no_grad():
        for _ in range(40):
            donor(torch.randn(32, 3, 10, 10))
    return donor.state_dict()


class LeafClassifier(nn.Module):
    def __init__(self, weights, classes):
        super().__init__()
        self.backbone = make_backbone()  #! also
        self.backbone.load_state_dict(weights)
        for p in self.backbone.parameters():  #! also
            p.requires_grad = False  #! also
        self.fc = nn.Linear(12, classes)

    def forward(self, images):
        return self.fc(self.backbone(images))  #! also


def fine_tune(model, images, labels, epochs, lr):
    optimizer = torch.optim.SGD(model.fc.parameters(), lr=lr, momentum=0.9)
    for epoch in range(epochs):
        model.train()  #! here
#+         model.backbone.eval()
        for part in torch.arange(len(images)).chunk(4):  #! here
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images[part]), labels[part])  #! also
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            accuracy = (model(images).argmax(1) == labels).float().mean()
        print(f"epoch {epoch} accuracy {accuracy:.2f}")


torch.manual_seed(63)
weights = pretrained_weights()
model = LeafClassifier(weights, classes=2)
labels = torch.randint(0, 2, (48,))
images = 2 + (1 + labels[:, None, None, None]) * torch.randn(48, 3, 10, 10)
fine_tune(model, images, labels, epochs=5, lr=0.05)
