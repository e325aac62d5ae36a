# /// case
# title = "Learnable temperature registered as a buffer"
# category = "optimizer-wiring"
# kind = "unregistered-parameters"
# severity = "warning"
# names = ["logit_scale", "register_buffer"]
# difficulty = "hard"
# symptom = "Contrastive training works, the temperature stays at its initial value; silent."
# symptom_check = "'logit_scale' not in dict(model.named_parameters()) and trainer.curve[0][1] == trainer.curve[-1][1]"
# cause = "logit_scale is a buffer, hence not in parameters(), without gradient and never updated, although it is meant to be learned."
# fix = "Make it an nn.Parameter."
# evidence = [{ url = "https://github.com/shenweichen/DeepCTR-Torch/issues/93" }, { url = "https://runebook.dev/zh/docs/pytorch/generated/torch.nn.parameter.parameter" }]
# ///
"""CLIP-like contrastive model for two modalities with a learned temperature."""
import math

import torch
import torch.nn.functional as F
from torch import nn


class Tower(nn.Module):
    def __init__(self, n_in, dim, hidden=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_in, hidden), nn.GELU(), nn.Linear(hidden, dim))

    def forward(self, x):
        return F.normalize(self.net(x), dim=-1)


class DualEncoder(nn.Module):
    def __init__(self, n_image, n_text, dim=16, init_temperature=0.2):
        super().__init__()
        self.image, self.text = Tower(n_image, dim), Tower(n_text, dim)
        self.register_buffer("logit_scale", torch.tensor(math.log(1 / init_temperature)))  #- here
#+         self.logit_scale = nn.Parameter(torch.tensor(math.log(1 / init_temperature)))

    def forward(self, image, text):
        scale = self.logit_scale.clamp(max=math.log(100)).exp()  #! also
        return scale * self.image(image) @ self.text(text).T


def contrastive_loss(logits):
    target = torch.arange(len(logits))
    return 0.5 * (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target))


class PairSource:
    def __init__(self, seed):
        self.g = torch.Generator().manual_seed(seed)
        self.to_image = torch.randn(6, 20, generator=self.g)
        self.to_text = torch.randn(6, 12, generator=self.g)

    def batch(self, n):
        z = torch.randn(n, 6, generator=self.g)
        noise = lambda k: 0.1 * torch.randn(n, k, generator=self.g)
        return z @ self.to_image + noise(20), z @ self.to_text + noise(12)


class ContrastiveTrainer:
    def __init__(self, model, lr):
        self.model = model
        decay = [p for p in model.parameters() if p.ndim >= 2]
        plain = [p for p in model.parameters() if p.ndim < 2]
        self.opt = torch.optim.AdamW([{"params": decay, "weight_decay": 1e-2}, {"params": plain, "weight_decay": 0.0}], lr=lr)  #! also
        self.curve = []

    def fit(self, source, steps, batch):
        for _ in range(steps):
            loss = contrastive_loss(self.model(*source.batch(batch)))
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.curve.append((loss.item(), self.model.logit_scale.exp().item()))


torch.manual_seed(0)
model = DualEncoder(20, 12)
trainer = ContrastiveTrainer(model, lr=5e-3)
trainer.fit(PairSource(1), steps=40, batch=48)
print(trainer.curve[0], trainer.curve[-1])
