# /// case
# title = "Focal loss applies sigmoid before binary_cross_entropy_with_logits"
# category = "helper"
# kind = "double-sigmoid"
# severity = "warning"
# names = ["sigmoid", "binary_cross_entropy_with_logits"]
# symptom = "the loss sees scores between 0.5 and 0.73 only"
# symptom_check = "bool((scored >= 0).all() and (scored <= 1).all())"
# cause = "sigmoid twice"
# fix = "give the logits"
# evidence = [
#     { url = "https://github.com/itakurah/focal-loss-pytorch/pull/5", title = "F.binary_cross_entropy_with_logits already applies a sigmoid" },
#     { url = "https://github.com/lopuhin/kaggle-imet-2019/issues/3", title = "Sigmoid before BCEWithLogitsLoss" },
# ]
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(3)
scored = None


class FocalLoss(nn.Module):
    def __init__(self, gamma=2.0, alpha=0.25):
        super().__init__()
        self.gamma, self.alpha = gamma, alpha

    def forward(self, inputs, targets):
        global scored
        probs = torch.sigmoid(inputs)  #! also
        scored = probs  #-
        ce = F.binary_cross_entropy_with_logits(probs, targets, reduction="none")  #- here
#+         scored = inputs
#+         ce = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
        p_t = probs * targets + (1 - probs) * (1 - targets)
        return (self.alpha * (1 - p_t) ** self.gamma * ce).mean()


detector = nn.Sequential(nn.Linear(12, 20), nn.ReLU(), nn.Linear(20, 6))
focal = FocalLoss()
opt = torch.optim.AdamW(detector.parameters(), lr=1e-3)
for _ in range(6):
    boxes, labels = torch.randn(32, 12), (torch.rand(32, 6) > 0.8).float()
    opt.zero_grad()
    focal(detector(boxes), labels).backward()
    opt.step()
