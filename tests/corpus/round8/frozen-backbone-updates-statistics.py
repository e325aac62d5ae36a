# /// case
# title = "A frozen backbone's batch norm runs in train mode while the head is tuned"
# category = "mode"
# kind = "frozen-batchnorm-in-train-mode"
# kinds_also_ok = ["running-statistics-change-while-frozen", "missing-eval"]
# severity = "warning"
# names = ["backbone", "train", "eval", "BatchNorm"]
# symptom = "the running statistics of the pre-trained backbone change"
# symptom_check = "not torch.equal(backbone[1].running_mean, pretrained_mean)"
# cause = "requires_grad_(False) does not stop the running statistics, and model.train() puts the backbone into train mode as well."
# fix = "backbone.eval() after model.train()"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


def make_backbone():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    )


def pretrain(backbone, steps=5):
    head = nn.Linear(16, 6)
    optimizer = torch.optim.SGD([*backbone.parameters(), *head.parameters()], lr=0.05)
    for _ in range(steps):
        label = torch.randint(0, 6, (32,))
        image = torch.randn(32, 3, 12, 12) + label[:, None, None, None] / 3
        optimizer.zero_grad()
        F.cross_entropy(head(backbone(image)), label).backward()
        optimizer.step()


def tune(model, image, label, epochs=4):
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    for epoch in range(epochs):
        model.train()  #! here
#+         model[0].eval()
        for rows in torch.randperm(len(image)).split(8):
            loss = F.cross_entropy(model(image[rows]), label[rows])  #! also
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            print(epoch, loss.item(), (model(image).argmax(1) == label).float().mean().item())


torch.manual_seed(97)
backbone = make_backbone()
pretrain(backbone)
backbone.requires_grad_(False)  #! here
pretrained_mean = backbone[1].running_mean.clone()
label = torch.randint(0, 2, (32,))
image = 2 * torch.randn(32, 3, 12, 12) - 1 + label[:, None, None, None]
tune(nn.Sequential(backbone, nn.Linear(16, 2)), image, label)
