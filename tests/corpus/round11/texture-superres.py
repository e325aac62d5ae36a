# /// case
# title = "The features of the prediction are taken under no_grad"
# category = "graph-break"
# kind = "no-grad-around-prediction-features"
# kinds_also_ok = ["no-grad-in-loss", "perceptual-loss-without-gradient", "frozen-network-run-under-no-grad"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["perceptual", "feats_p", "no_grad"]
# symptom = "the feature loss never influences the upscaler"
# symptom_check = "not perceptual(model(nn.functional.avg_pool2d(sample, 2)), sample).requires_grad"
# cause = "the whole feature extraction, also of the prediction, runs under torch.no_grad()."
# fix = "run only the target's features under no_grad"
# ///
"""Toy x2 super resolution with an L1 + feature ("perceptual") loss."""
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class Config:
    steps: int = 60
    batch: int = 16
    lr: float = 2e-3
    perceptual: float = 0.5
    seed: int = 3


def textures(n, size=16):
    grid = torch.linspace(0, 3.14159 * 2, size)
    fx, fy, phase = (torch.rand(3, n, 1, 1) * 3).unbind(0)
    return (torch.sin(fx * grid[None, None, :] + fy * grid[None, :, None] + phase)).unsqueeze(1)


class Upscaler(nn.Module):
    def __init__(self, ch=12):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, ch, 3, padding=1), nn.PReLU(), nn.Conv2d(ch, 4, 3, padding=1))
        self.shuffle = nn.PixelShuffle(2)

    def forward(self, lr_img):
        base = F.interpolate(lr_img, scale_factor=2, mode="bilinear", align_corners=False)
        return base + self.shuffle(self.body(lr_img))


class FeatureNet(nn.Module):
    """Stands in for VGG."""

    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList([nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3, stride=2, padding=1)])

    def forward(self, x):
        taps = []
        for stage in self.stages:
            x = F.relu(stage(x))
            taps.append(x)
        return taps


class PerceptualLoss(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net.eval()
        for p in self.net.parameters():
            p.requires_grad = False

    def forward(self, prediction, target):
#+         feats_p = self.net(prediction)
        with torch.no_grad():  #! here
            feats_p = self.net(prediction)  #- here
            feats_t = self.net(target)
        return sum(F.mse_loss(a, b) for a, b in zip(feats_p, feats_t))  #! also


def fit(cfg, model, perceptual):
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    log = []
    for step in range(cfg.steps):
        hr = textures(cfg.batch)
        lr_img = F.avg_pool2d(hr, 2)
        sr = model(lr_img)
        pixel = F.l1_loss(sr, hr)
        feat = perceptual(sr, hr)  #! also
        loss = pixel + cfg.perceptual * feat  #! also
        opt.zero_grad()
        loss.backward()
        opt.step()
        log.append((pixel.item(), feat.item()))
        if step % 20 == 0:
            print(f"{step:4d}  pixel {pixel.item():.4f}  feature {feat.item():.4f}")
    return log


cfg = Config()
torch.manual_seed(cfg.seed)
torch.set_num_threads(1)
model = Upscaler()
perceptual = PerceptualLoss(FeatureNet())
log = fit(cfg, model, perceptual)
sample = textures(4)
print("final PSNR-ish:", -10 * torch.log10(F.mse_loss(model(F.avg_pool2d(sample, 2)), sample)).item())
