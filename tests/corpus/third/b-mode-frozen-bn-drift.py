# /// case
# title = "Batch norm of the frozen backbone keeps updating its statistics"
# category = "train-eval-mode"
# kind = "frozen-batchnorm-still-updating"
# severity = "warning"
# names = ["backbone", "running_mean", "train"]
# difficulty = "hard"
# symptom = "The frozen backbone gives different features over time although no parameter changes; silent."
# symptom_check = "not torch.equal(before['0.1.running_mean'], model.backbone[0][1].running_mean)"
# cause = "requires_grad_(False) does not stop the running statistics; model.train() puts the backbone's batch norm into training mode."
# fix = "Put the backbone in eval mode after model.train()."
# evidence = [{ url = "https://github.com/chemprop/chemprop/pull/952" }, { url = "https://github.com/ultralytics/ultralytics/pull/8753" }, { url = "https://github.com/isht7/pytorch-deeplab-resnet/issues/39" }]
# ///
"""Fine-tune a segmentation head on a frozen, pretrained backbone."""
import torch
import torch.nn.functional as F
from torch import nn


class ConvBNReLU(nn.Sequential):
    def __init__(self, i, o):
        super().__init__(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU())


class Segmenter(nn.Module):
    def __init__(self, classes=2):
        super().__init__()
        self.backbone = nn.Sequential(ConvBNReLU(1, 8), ConvBNReLU(8, 8))
        self.head = nn.Sequential(nn.Conv2d(8, 16, 1), nn.ReLU(), nn.Conv2d(16, classes, 1))

    def forward(self, x):
        return self.head(self.backbone(x))


def images(n, shift=0.0):
    mask = (F.avg_pool2d(torch.randn(n, 1, 16, 16), 5, 1, 2) > 0).long().squeeze(1)
    return mask.unsqueeze(1) * 1.5 + 0.4 * torch.randn(n, 1, 16, 16) + shift, mask


def pretrain(model, steps):
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    model.train()
    for _ in range(steps):
        x, m = images(8)
        loss = F.cross_entropy(model(x), m)
        opt.zero_grad()
        loss.backward()
        opt.step()


def finetune(model, steps, lr):
    model.backbone.requires_grad_(False)  #! also
    opt = torch.optim.Adam(model.head.parameters(), lr=lr)
    model.train()  #! here
#+     model.backbone.eval()
    losses = []
    for _ in range(steps):
        x, m = images(8, shift=2.0)
        loss = F.cross_entropy(model(x), m)  #! here
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


torch.manual_seed(0)
model = Segmenter()
pretrain(model, 15)
before = {k: v.clone() for k, v in model.backbone.state_dict().items()}
losses = finetune(model, 15, lr=5e-3)
print(losses[0], losses[-1])
