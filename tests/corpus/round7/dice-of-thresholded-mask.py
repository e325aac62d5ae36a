# /// case
# title = "The Dice term is computed from the thresholded mask"
# category = "graph-break"
# kind = "non-differentiable-comparison"
# kinds_also_ok = ["graph-break", "constant-loss-term"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["dice_loss", "hard"]
# symptom = "the Dice term has no graph, only BCE trains"
# symptom_check = "not dice.requires_grad"
# cause = "a comparison has no gradient"
# fix = "use probabilities"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


def dice_loss(logits, mask, eps=1.0):
    prob = torch.sigmoid(logits)
    hard = (prob > 0.5).float()  #- here
    overlap = (hard * mask).sum(dim=(1, 2, 3))  #- also
    total = hard.sum(dim=(1, 2, 3)) + mask.sum(dim=(1, 2, 3))  #- also
#+     overlap = (prob * mask).sum(dim=(1, 2, 3))
#+     total = prob.sum(dim=(1, 2, 3)) + mask.sum(dim=(1, 2, 3))
    return (1 - (2 * overlap + eps) / (total + eps)).mean()


class TinyUNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.down = nn.Conv2d(3, width, 3, stride=2, padding=1)
        self.mid = nn.Conv2d(width, width, 3, padding=1)
        self.up = nn.ConvTranspose2d(width, width, 2, stride=2)
        self.last = nn.Conv2d(width + 3, 1, 1)

    def forward(self, x):
        h = F.relu(self.mid(F.relu(self.down(x))))
        return self.last(torch.cat([self.up(h), x], dim=1))


torch.manual_seed(4)
images = torch.rand(12, 3, 12, 12)
masks = (images.mean(1, keepdim=True) > 0.55).float()
unet = TinyUNet()
optimizer = torch.optim.Adam(unet.parameters(), lr=1e-2)
log = {"bce": [], "dice": []}
for epoch in range(4):
    for batch, mask in zip(images.split(4), masks.split(4)):
        logits = unet(batch)
        bce = F.binary_cross_entropy_with_logits(logits, mask)
        dice = dice_loss(logits, mask)
        optimizer.zero_grad()
        (bce + 0.5 * dice).backward()  #! also
        optimizer.step()
        log["bce"].append(bce.item())
        log["dice"].append(dice.item())
print({k: v[-1] for k, v in log.items()})
