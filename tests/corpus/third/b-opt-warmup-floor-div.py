# /// case
# title = "Integer division makes the warm-up factor zero"
# category = "optimizer-wiring"
# kind = "learning-rate-zero"
# severity = "warning"
# severity_by_writer = "error"
# names = ["warmup", "schedule", "lr"]
# difficulty = "medium"
# symptom = "All parameters stay exactly as initialised for the whole warm-up, which is the whole short run; gradients are fine."
# symptom_check = "all(torch.equal(a, b) for a, b in zip(start, model.parameters()))"
# cause = "min(1, step // warmup) is 0 for every step below warmup; the learning rate is 0 during the complete warm-up."
# fix = "Use (step + 1) / warmup."
# evidence = [{ url = "https://github.com/karpathy/nanoGPT/pull/578" }, { url = "https://github.com/EleutherAI/gpt-neox/issues/1373" }, { url = "https://github.com/verl-project/verl/issues/3674" }]
# ///
"""Denoising diffusion on 2-D points, epsilon prediction."""
import math

import torch
from torch import nn


def make_schedule(optimizer, warmup, total):
    def factor(step):
        if step < warmup:
            return min(1, step // warmup)  #- here
#+             return min(1, (step + 1) / warmup)
        done = (step - warmup) / max(1, total - warmup)
        return 0.5 * (1 + math.cos(math.pi * min(1.0, done)))

    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)  #! here


class Denoiser(nn.Module):
    def __init__(self, width=64, freqs=6):
        super().__init__()
        self.register_buffer("freqs", 2.0 ** torch.arange(freqs))
        self.net = nn.Sequential(nn.Linear(2 + 2 * freqs, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2))

    def forward(self, x, t):
        ang = t[:, None] * self.freqs
        return self.net(torch.cat([x, ang.sin(), ang.cos()], 1))


class Diffusion:
    def __init__(self, steps=50):
        beta = torch.linspace(1e-4, 0.2, steps)
        self.alpha_bar = torch.cumprod(1 - beta, 0)
        self.steps = steps

    def loss(self, model, x0):
        t = torch.randint(0, self.steps, (len(x0),))
        a = self.alpha_bar[t][:, None]
        noise = torch.randn_like(x0)
        xt = a.sqrt() * x0 + (1 - a).sqrt() * noise
        return nn.functional.mse_loss(model(xt, t / self.steps), noise)


def moons(n):
    a = math.pi * torch.rand(n)
    flip = torch.randint(0, 2, (n,)) * 2 - 1
    return torch.stack([a.cos() + 0.5 * (flip < 0), flip * a.sin()], 1)


def train(steps=80, warmup=100, seed=0):
    torch.manual_seed(seed)
    model, diffusion = Denoiser(), Diffusion()
    start = [p.detach().clone() for p in model.parameters()]
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    sched = make_schedule(opt, warmup=warmup, total=2000)  #! also
    curve = []
    for _ in range(steps):
        loss = diffusion.loss(model, moons(128))
        opt.zero_grad()
        loss.backward()
        opt.step()  #! also
        sched.step()
        curve.append(loss.item())
    return model, start, curve


model, start, curve = train()
print(sum(curve[:10]) / 10, sum(curve[-10:]) / 10)
