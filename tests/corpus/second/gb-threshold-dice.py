# /// case
# title = "The Dice term uses thresholded predictions: it adds a constant, only BCE trains the network"
# category = "graph-break"
# kind = "graph-break-non-differentiable"
# severity = "warning"
# names = ["hard", "dice"]
# difficulty = "hard"
# symptom = "silent: dice.requires_grad is False"
# symptom_check = "not dice.requires_grad"
# cause = "a comparison gives a bool tensor; .float() does not restore the gradient"
# fix = "soft Dice on probabilities"
# evidence = [
#     { url = "https://github.com/tensorlayer/TensorLayer/issues/891" },
#     { url = "https://github.com/Ugenteraan/Deep_Hierarchical_Classification/issues/6" },
# ]
# ///
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(19)
segnet = nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 1, 3, padding=1))
opt = torch.optim.AdamW(segnet.parameters(), lr=2e-3)


def overlap_loss(prob, mask, eps=1.0):
    hard = (prob > 0.5).float()  #- here
#+     hard = prob
    inter = (hard * mask).sum()
    return 1 - (2 * inter + eps) / (hard.sum() + mask.sum() + eps)  #! also


for it in range(5):
    scan = torch.rand(2, 1, 10, 10)
    mask = (scan > 0.6).float()
    logit = segnet(scan)
    bce = F.binary_cross_entropy_with_logits(logit, mask)
    dice = overlap_loss(logit.sigmoid(), mask)  #! also
    loss = bce + dice  #! also
    opt.zero_grad()
    loss.backward()
    opt.step()
print(round(bce.item(), 4), round(dice.item(), 4))
