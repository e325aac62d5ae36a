# /// case
# title = "Dice loss on the thresholded mask, error silenced with requires_grad_"
# category = "graph-break"
# kind = "graph-break-non-differentiable"
# kinds_also_ok = ["graph-break-new-tensor", "parameter-without-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["mask", "dice_loss", "loss", "requires_grad_"]
# difficulty = "easy"
# symptom = "loss.backward() runs, every parameter gradient is None, the loss does not change"
# symptom_check = "all(p.grad is None for p in net.parameters())"
# cause = "the comparison with 0.5 gives a boolean tensor without history; requires_grad_() on the loss only hides the error"
# fix = "compute Dice on the probabilities"
# evidence = [{ url = "https://github.com/ronghuaiyang/arcface-pytorch/issues/56" }, { url = "https://github.com/speechbrain/speechbrain/issues/735" }]
# ///
import torch
import torch.nn as nn


class TinySeg(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.up = nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(width, 1, 3, padding=1))

    def forward(self, x):
        return self.up(self.down(x))


def dice_loss(logits, target, eps=1.0):
    mask = (torch.sigmoid(logits) > 0.5).float()  #- here
#+     mask = torch.sigmoid(logits)
    inter = (mask * target).sum(dim=(1, 2, 3))
    total = mask.sum(dim=(1, 2, 3)) + target.sum(dim=(1, 2, 3))
    return 1 - ((2 * inter + eps) / (total + eps)).mean()


def blobs(n, size=16):
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    c = torch.randint(4, size - 4, (n, 2))
    d = (yy - c[:, 0, None, None]) ** 2 + (xx - c[:, 1, None, None]) ** 2
    target = (d < 9).float().unsqueeze(1)
    return target + 0.3 * torch.randn(n, 1, size, size), target


torch.manual_seed(11)
net = TinySeg()
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for epoch in range(15):
    image, target = blobs(16)
    opt.zero_grad()
    loss = dice_loss(net(image), target)
    loss.requires_grad_(True)  #- here
    loss.backward()  #! also
    opt.step()
print("dice loss", round(loss.item(), 3))
