# /// case
# title = "Loss weight divides by a signal-to-noise ratio that is zero at the end"
# category = "numerics"
# kind = "nonfinite-gradient"
# kinds_also_ok = ["nonfinite-forward", "divergence", "nonfinite-input"]
# severity = "error"
# names = ["snr", "mse_loss_weights", "compute_snr"]
# symptom = "the loss is NaN as soon as the last timestep is drawn"
# symptom_check = "bool(torch.isnan(unet[0].weight).any())"
# cause = "0 / 0 in the weight"
# fix = "define the weight at zero snr"
# evidence = [
#     { url = "https://github.com/TiankaiHang/Min-SNR-Diffusion-Training/pull/4", title = "Fix zero / infinite weight position when using rescaled betas for zero-terminal SNR" },
# ]
# ///
from dataclasses import dataclass

import torch
import torch.nn as nn


def rescale_zero_terminal_snr(betas):
    bar = (1 - betas).cumprod(0).sqrt()
    first, last = bar[0].clone(), bar[-1].clone()
    bar = (bar - last) * first / (first - last)
    alphas = bar[1:] ** 2 / bar[:-1] ** 2
    return 1 - torch.cat([bar[:1] ** 2, alphas])


@dataclass
class Scheduler:
    steps: int = 50

    def __post_init__(self):
        betas = rescale_zero_terminal_snr(torch.linspace(1e-3, 0.1, self.steps))
        self.alphas_cumprod = (1 - betas).cumprod(0)

    def add_noise(self, x, noise, t):
        a = self.alphas_cumprod[t].unsqueeze(1)
        return a.sqrt() * x + (1 - a).sqrt() * noise

    def compute_snr(self, t):
        a = self.alphas_cumprod[t]
        return a / (1 - a)


def weights(scheduler, t, gamma=5.0):
    snr = scheduler.compute_snr(t)
    return torch.minimum(snr, torch.full_like(snr, gamma)) / snr  #- here
#+     weight = torch.minimum(snr, torch.full_like(snr, gamma)) / snr
#+     return torch.where(snr == 0, torch.ones_like(weight), weight)


torch.manual_seed(93)
scheduler = Scheduler()
unet = nn.Sequential(nn.Linear(9, 32), nn.SiLU(), nn.Linear(32, 8))
optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-3)
for step in range(6):
    x, noise = torch.randn(64, 8), torch.randn(64, 8)
    t = torch.randint(0, scheduler.steps, (64,))
    pred = unet(torch.cat([scheduler.add_noise(x, noise, t), t.unsqueeze(1) / scheduler.steps], 1))
    mse_loss_weights = weights(scheduler, t)
    loss = (nn.functional.mse_loss(pred, noise, reduction="none").mean(1) * mse_loss_weights).mean()  #! also
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
