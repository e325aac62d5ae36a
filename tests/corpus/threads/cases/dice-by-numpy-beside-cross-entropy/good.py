import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(4)


def dice_loss(logits, mask, eps=1.0):
    p = torch.sigmoid(logits)
    inter = (p * mask).sum()
    score = (2 * inter + eps) / (p.sum() + mask.sum() + eps)
    return 1 - score


unet = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1))
optimizer = torch.optim.Adam(unet.parameters(), lr=5e-3)
images = torch.rand(4, 1, 16, 16)
masks = (images > 0.6).float()
for epoch in range(6):
    out = unet(images)
    bce = F.binary_cross_entropy_with_logits(out, masks)
    dice = dice_loss(out, masks)
    loss = bce + dice
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(epoch, float(np.round(loss.item(), 4)))
