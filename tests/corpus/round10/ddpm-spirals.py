# /// case
# title = "The smoothed loss for the log is a chain of all losses with their graphs"
# category = "retention"
# kind = "running-loss-keeps-graph"
# kinds_also_ok = ["loss-accumulated-with-graph", "graph-kept-by-logging", "missing-item"]
# severity = "warning"
# names = ["smoothed", "loss", "item"]
# symptom = "memory grows with every step, as no step's graph is ever let go"
# symptom_check = "torch.is_tensor(trainer.smoothed) and trainer.smoothed.grad_fn is not None"
# cause = "The exponential average adds tensors that require gradients, so each value holds the graphs of all earlier ones."
# fix = "average loss.detach()"
# ///
import math

import torch
from torch import nn


class NoiseNet(nn.Module):
    def __init__(self, dim=2, width=64, frequencies=8):
        super().__init__()
        self.register_buffer("freq", 2.0 ** torch.arange(frequencies))
        self.net = nn.Sequential(
            nn.Linear(dim + 2 * frequencies, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, dim)
        )

    def forward(self, x, t):
        phase = t[:, None] * self.freq
        return self.net(torch.cat([x, phase.sin(), phase.cos()], dim=-1))


class Diffusion:
    def __init__(self, steps):
        self.steps = steps
        betas = torch.linspace(1e-4, 0.06, steps)
        self.alpha_bar = torch.cumprod(1 - betas, dim=0)

    def noised(self, x0):
        t = torch.randint(self.steps, (len(x0),))
        eps = torch.randn_like(x0)
        a = self.alpha_bar[t][:, None]
        return a.sqrt() * x0 + (1 - a).sqrt() * eps, t / self.steps, eps


class Trainer:
    def __init__(self, model, diffusion, lr):
        self.model, self.diffusion = model, diffusion
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.smoothed = None
        self.curve = []

    def step(self, x0):
        xt, t, eps = self.diffusion.noised(x0)
        loss = (self.model(xt, t) - eps).square().mean()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.smoothed = loss if self.smoothed is None else 0.98 * self.smoothed + 0.02 * loss  #- here
#+         self.smoothed = loss.item() if self.smoothed is None else 0.98 * self.smoothed + 0.02 * loss.item()
        self.curve.append(float(self.smoothed))  #! also

    def fit(self, data, epochs, batch):
        for _ in range(epochs):
            for rows in torch.randperm(len(data)).split(batch):
                self.step(data[rows])


def spirals(n):
    arm = torch.randint(2, (n,)) * math.pi
    r = torch.rand(n).sqrt() * 2
    theta = 2.5 * r + arm
    return torch.stack([r * theta.cos(), r * theta.sin()], -1) + 0.05 * torch.randn(n, 2)


torch.manual_seed(8)
trainer = Trainer(NoiseNet(), Diffusion(steps=60), lr=3e-3)
trainer.fit(spirals(1024), epochs=20, batch=128)
print("first", trainer.curve[0], "last", trainer.curve[-1])
