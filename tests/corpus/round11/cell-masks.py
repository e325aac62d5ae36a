# /// case
# title = "The dice term is computed from a thresholded mask"
# category = "graph-break"
# kind = "threshold-before-loss"
# kinds_also_ok = ["non-differentiable-operation", "hard-threshold-in-loss", "comparison-breaks-graph", "dice-loss-without-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["mask", "probs", "dice"]
# symptom = "the dice part of the loss has no gradient and only the cross-entropy trains the network"
# symptom_check = "not criterion.dice(model(images), masks).requires_grad"
# cause = "the comparison with 0.5 has no derivative, so the dice loss is cut off from the network."
# fix = "compute the dice from the probabilities themselves"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)


def conv_block(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
    )


class TinyUNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.enc1 = conv_block(1, width)
        self.enc2 = conv_block(width, width * 2)
        self.pool = nn.MaxPool2d(2)
        self.up = nn.ConvTranspose2d(width * 2, width, 2, stride=2)
        self.dec = conv_block(width * 2, width)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        e1 = self.enc1(x)
        e2 = self.enc2(self.pool(e1))
        d = self.dec(torch.cat([self.up(e2), e1], dim=1))
        return self.out(d)


class DiceBCELoss(nn.Module):
    def __init__(self, dice_weight=1.0, smooth=1.0):
        super().__init__()
        self.dice_weight = dice_weight
        self.smooth = smooth

    def dice(self, logits, target):
        probs = torch.sigmoid(logits)
        mask = (probs > 0.5).float()  #- here
#+         mask = probs
        inter = (mask * target).sum(dim=(1, 2, 3))  #! also
        total = mask.sum(dim=(1, 2, 3)) + target.sum(dim=(1, 2, 3))  #! also
        return 1 - ((2 * inter + self.smooth) / (total + self.smooth)).mean()  #! also

    def forward(self, logits, target):
        bce = F.binary_cross_entropy_with_logits(logits, target)
        return bce + self.dice_weight * self.dice(logits, target)  #! also


def make_cells(n, size=24):
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    cy, cx = torch.randint(5, size - 5, (2, n, 1, 1))
    radius = torch.randint(2, 6, (n, 1, 1))
    masks = ((yy - cy) ** 2 + (xx - cx) ** 2 <= radius ** 2).float()
    images = masks * 0.7 + 0.35 * torch.randn(n, size, size)
    return images.unsqueeze(1), masks.unsqueeze(1)


@torch.no_grad()
def iou(model, loader):
    model.eval()
    inter = union = 0.0
    for x, y in loader:
        pred = model(x) > 0
        inter += (pred & (y > 0.5)).sum().item()
        union += (pred | (y > 0.5)).sum().item()
    return inter / max(union, 1)


train_loader = DataLoader(TensorDataset(*make_cells(96)), batch_size=16, shuffle=True)
val_loader = DataLoader(TensorDataset(*make_cells(32)), batch_size=16)

model = TinyUNet()
criterion = DiceBCELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for epoch in range(5):
    model.train()
    for images, masks in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(images), masks)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}  IoU {iou(model, val_loader):.3f}")
