# /// case
# title = "Logits (B, C, H, W) are flattened to (-1, C) with view"
# category = "loss"
# kind = "view-instead-of-permute"
# kinds_also_ok = ["flattened-without-permute", "class-dimension-scrambled", "reshape-scrambles-logits"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["scores", "view", "SegmentationLoss"]
# symptom = "the loss stays near that of the class frequencies although the task is trivial"
# symptom_check = "losses[-1] > 0.5"
# cause = "The rows of the view are runs of neighbouring pixels of one channel, not the classes' scores of one pixel."
# fix = "permute(0, 2, 3, 1) before the reshape"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class UNet(nn.Module):
    def __init__(self, classes, base=8):
        super().__init__()
        self.down1 = self.block(3, base)
        self.down2 = self.block(base, 2 * base)
        self.up = nn.ConvTranspose2d(2 * base, base, 2, stride=2)
        self.merge = self.block(2 * base, base)
        self.classify = nn.Conv2d(base, classes, 1)

    @staticmethod
    def block(inputs, outputs):
        return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU())

    def forward(self, x):
        skip = self.down1(x)
        deep = self.up(self.down2(F.max_pool2d(skip, 2)))
        return self.classify(self.merge(torch.cat([skip, deep], 1)))


class SegmentationLoss(nn.Module):
    def __init__(self, classes, ignore=255):
        super().__init__()
        self.classes, self.ignore = classes, ignore

    def forward(self, logits, masks):
        scores = logits.contiguous().view(-1, self.classes)  #- here
#+         scores = logits.permute(0, 2, 3, 1).reshape(-1, self.classes)
        return F.cross_entropy(scores, masks.view(-1), ignore_index=self.ignore)  #! here


def scenes(count, size=16, classes=4):
    masks = torch.zeros(count, size, size, dtype=torch.long)
    for mask in masks:
        for k in range(1, classes):
            top, left = torch.randint(0, size - 6, (2,)).tolist()
            mask[top:top + 6, left:left + 6] = k
    colours = torch.tensor([[0.1, 0.1, 0.1], [0.9, 0.1, 0.1], [0.1, 0.9, 0.1], [0.1, 0.1, 0.9]])
    images = colours[masks].permute(0, 3, 1, 2) + 0.05 * torch.randn(count, 3, size, size)
    masks[:, 0, :] = 255
    return images, masks


torch.manual_seed(44)
model, criterion = UNet(classes=4), SegmentationLoss(classes=4)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
losses = []
for step in range(25):
    images, masks = scenes(8)
    loss = criterion(model(images), masks)  #! also
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(f"first {losses[0]:.3f} last {losses[-1]:.3f}")
