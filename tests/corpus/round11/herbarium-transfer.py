# /// case
# title = "The frozen backbone's batch norm goes on updating its statistics"
# category = "mode"
# kind = "frozen-batchnorm-in-train-mode"
# kinds_also_ok = ["batchnorm-statistics-drift", "frozen-layers-in-train-mode", "missing-eval-for-frozen-part", "running-stats-updated"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["backbone", "train", "BatchNorm2d", "running_mean"]
# symptom = "the frozen backbone gives other features afterwards and the first model is broken"
# symptom_check = "not torch.equal(features_before, features_after)"
# cause = "requires_grad_(False) does not stop the running statistics; model.train() puts the batch norms of the backbone in train mode."
# fix = "backbone.eval() after model.train()"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


def leaves(n, contrast, shift):
    kind = torch.randint(0, 3, (n,))
    img = torch.zeros(n, 1, 12, 12)
    img[kind == 0, :, 2:10, 5:7] = 1
    img[kind == 1, :, 5:7, 2:10] = 1
    img[kind == 2, :, 3:9, 3:9] = 1
    return contrast * img + shift + 0.3 * torch.randn_like(img), kind


class Classifier(nn.Module):
    def __init__(self, backbone, head):
        super().__init__()
        self.backbone = backbone
        self.head = head

    def forward(self, x):
        return self.head(self.backbone(x))


def make_backbone():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(),
    )


def fit(model, params, data, epochs, lr):
    x, y = data
    optimizer = torch.optim.Adam(params, lr=lr)
    for epoch in range(epochs):
        model.train()
        for idx in torch.randperm(len(x)).split(32):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


def fit_head(model, data, epochs, lr):
    x, y = data
    model.backbone.requires_grad_(False)  #! here
    optimizer = torch.optim.Adam(model.head.parameters(), lr=lr)
    for epoch in range(epochs):  #! also
        model.train()  #! here
#+         model.backbone.eval()
        for idx in torch.randperm(len(x)).split(32):
            loss = F.cross_entropy(model(x[idx]), y[idx])  #! also
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


@torch.no_grad()
def accuracy(model, data):
    model.eval()
    return (model(data[0]).argmax(1) == data[1]).float().mean().item()


torch.manual_seed(23)
torch.set_num_threads(1)
backbone = make_backbone()
herbarium = Classifier(backbone, nn.Linear(64, 3))
indoor, outdoor = leaves(192, 1.0, 0.0), leaves(192, 3.0, 2.0)
fit(herbarium, herbarium.parameters(), indoor, epochs=6, lr=5e-3)
before = accuracy(herbarium, indoor)
with torch.no_grad():
    features_before = backbone(indoor[0][:16])

field = Classifier(backbone, nn.Linear(64, 3))
fit_head(field, outdoor, epochs=8, lr=1e-2)  #! also

with torch.no_grad():
    features_after = field.eval().backbone(indoor[0][:16])
print("outdoor accuracy", accuracy(field, outdoor))
print("herbarium accuracy before", before, "after", accuracy(herbarium, indoor))
