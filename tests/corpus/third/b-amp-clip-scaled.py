# /// case
# title = "Clipping the scaled gradients of the GradScaler"
# category = "amp"
# kind = "clip-before-unscale"
# severity = "warning"
# names = ["scaler", "unscale_", "clip_grad_norm_"]
# difficulty = "hard"
# symptom = "Loss hardly moves: after unscaling the gradient norm is at most 1/4096."
# symptom_check = "losses[-1] > 0.9 * losses[0]"
# cause = "clip_grad_norm_ runs on gradients multiplied by the scale; unscaling then divides the clipped gradients once more."
# fix = "Call scaler.unscale_(optimizer) before clipping."
# evidence = [{ url = "https://github.com/milesial/Pytorch-UNet/issues/468" }, { url = "https://github.com/pytorch/examples/issues/1196" }, { url = "https://github.com/Lightning-AI/pytorch-lightning/issues/9599" }]
# ///
"""Mixed-precision trainer for a small U-shaped network."""
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Args:
    amp: bool = True
    clip: float = 1.0
    lr: float = 0.1
    steps: int = 14
    scale: float = 2.0**12


class DoubleConv(nn.Sequential):
    def __init__(self, i, o):
        super().__init__(nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(2, o), nn.ReLU(), nn.Conv2d(o, o, 3, padding=1), nn.ReLU())


class MiniUNet(nn.Module):
    def __init__(self, base=8):
        super().__init__()
        self.enc = DoubleConv(1, base)
        self.mid = DoubleConv(base, 2 * base)
        self.up = nn.ConvTranspose2d(2 * base, base, 2, stride=2)
        self.dec = DoubleConv(2 * base, base)
        self.out = nn.Conv2d(base, 1, 1)

    def forward(self, x):
        e = self.enc(x)
        m = self.mid(F.max_pool2d(e, 2))
        return self.out(self.dec(torch.cat([e, self.up(m)], 1)))


def discs(n, size=16):
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    c = torch.randint(4, 12, (n, 2, 1, 1))
    mask = (((yy - c[:, 0]) ** 2 + (xx - c[:, 1]) ** 2) < 12).float().unsqueeze(1)
    return mask + 0.3 * torch.randn(n, 1, size, size), mask


def train(args):
    torch.manual_seed(0)
    model = MiniUNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=args.scale, enabled=args.amp)
    losses = []
    for _ in range(args.steps):
        image, mask = discs(8)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.amp):
            logits = model(image)
        loss = F.binary_cross_entropy_with_logits(logits.float(), mask)
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()  #! here
#+         scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)  #! here
        scaler.step(optimizer)  #! also
        scaler.update()
        losses.append(loss.item())
    return model, losses


model, losses = train(Args())
print(losses[0], "->", losses[-1])
