# /// case
# title = "Segmentation training validates every few steps and stays in eval mode until the epoch ends"
# category = "train-eval-mode"
# kind = "training-in-eval-mode"
# severity = "warning"
# names = ["net"]
# difficulty = "hard"
# symptom = "silent: most training steps run with frozen batch-norm statistics and without dropout"
# symptom_check = "modes.count(False) > 0"
# cause = "evaluate() calls eval(); train() is called once per epoch"
# fix = "call train() after each validation"
# evidence = [
#     { url = "https://github.com/wkentaro/pytorch-fcn/pull/56" },
#     { url = "https://github.com/fartashf/vsepp/issues/4" },
#     { url = "https://github.com/webis-de/small-text/issues/40" },
# ]
# ///
"""Tiny U-Net on synthetic discs, validated during the epoch."""
import torch
import torch.nn.functional as F
from torch import nn


def disc_batch(n, size=16):
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    cx, cy = torch.randint(4, 12, (2, n, 1, 1))
    radius = torch.randint(2, 5, (n, 1, 1))
    mask = ((xx - cx) ** 2 + (yy - cy) ** 2 <= radius**2).float()
    return mask.unsqueeze(1) + 0.3 * torch.randn(n, 1, size, size), mask.unsqueeze(1)


def double_conv(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.ReLU(),
        nn.Conv2d(cout, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.ReLU(),
    )


class UNet(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.down = double_conv(1, width)
        self.mid = double_conv(width, 2 * width)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.merge = double_conv(2 * width, width)
        self.drop = nn.Dropout2d(0.1)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        skip = self.down(x)
        deep = self.mid(F.max_pool2d(skip, 2))
        merged = self.merge(torch.cat([self.up(deep), skip], dim=1))
        return self.out(self.drop(merged))


def dice_loss(logits, mask):
    prob = logits.sigmoid()
    inter = (prob * mask).sum((1, 2, 3))
    return (1 - (2 * inter + 1) / (prob.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + 1)).mean()


@torch.no_grad()
def evaluate(net, batches):
    net.eval()  #! also
    score = 0.0
    for img, mask in batches:
        score += 1 - dice_loss(net(img), mask).item()
#+     net.train()
    return score / len(batches)


torch.manual_seed(5)
net = UNet()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
valid = [disc_batch(6) for _ in range(2)]
modes, best = [], 0.0
for epoch in range(2):
    net.train()
    for step in range(6):
        img, mask = disc_batch(8)
        modes.append(net.training)
        logits = net(img)  #! here
        loss = F.binary_cross_entropy_with_logits(logits, mask) + dice_loss(logits, mask)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 2 == 0:
            best = max(best, evaluate(net, valid))
    print(epoch, round(loss.item(), 3), round(best, 3), modes.count(True))
