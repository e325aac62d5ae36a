# /// case
# title = "Dice loss computed in numpy and added to cross-entropy"
# category = "partial-cut"
# kind = "graph-break-numpy"
# kinds_also_ok = ["graph-break-rebuild", "constant-loss-term"]
# severity = "warning"
# names = ["dice", "dice_loss"]
# symptom = "the dice term has no grad_fn, only cross-entropy trains"
# symptom_check = "dice.grad_fn is None"
# cause = "the probabilities leave the graph through numpy"
# fix = "compute the overlap with tensors"
# evidence = [
#     { url = "https://github.com/kevinzakka/pytorch-goodies/issues/11", title = "error with dice loss" },
#     { url = "https://github.com/qubvel-org/segmentation_models.pytorch/pull/611", title = "Threshold for Dice loss" },
# ]
# ///
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(4)


def dice_loss(logits, mask, eps=1.0):
    p = torch.sigmoid(logits).detach().cpu().numpy()  #- here
    m = mask.cpu().numpy()  #-
    inter = np.sum(p * m)  #-
    score = (2 * inter + eps) / (p.sum() + m.sum() + eps)  #-
    return torch.tensor(1 - score)  #- here
#+     p = torch.sigmoid(logits)
#+     inter = (p * mask).sum()
#+     score = (2 * inter + eps) / (p.sum() + mask.sum() + eps)
#+     return 1 - score


unet = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1))
optimizer = torch.optim.Adam(unet.parameters(), lr=5e-3)
images = torch.rand(4, 1, 16, 16)
masks = (images > 0.6).float()
for epoch in range(6):
    out = unet(images)
    bce = F.binary_cross_entropy_with_logits(out, masks)
    dice = dice_loss(out, masks)  #! also
    loss = bce + dice  #! also
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(epoch, float(np.round(loss.item(), 4)))
