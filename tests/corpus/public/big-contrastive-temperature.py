# /// case
# title = "CLIP-like training: the learnable temperature is used through .item()"
# category = "graph-break"
# kind = "graph-break-item"
# severity = "warning"
# names = ["logit_scale"]
# difficulty = "hard"
# symptom = "silent: logit_scale keeps grad None"
# symptom_check = "duo.logit_scale.grad is None"
# cause = ".item() returns a Python float"
# fix = "self.logit_scale.exp()"
# evidence = [
#     { url = "https://github.com/bowen-gao/DrugCLIP/issues/26" },
# ]
# ///
"""Two-tower contrastive training on paired vectors."""
import math

import torch
import torch.nn.functional as F
from torch import nn


class Tower(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(d_in, 48),
            nn.LayerNorm(48),
            nn.GELU(),
            nn.Linear(48, d_out),
        )

    def forward(self, x):
        return F.normalize(self.net(x), dim=-1)


class TwoTower(nn.Module):
    def __init__(self, d_img, d_txt, d_joint=16):
        super().__init__()
        self.image = Tower(d_img, d_joint)
        self.text = Tower(d_txt, d_joint)
        self.logit_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))

    def forward(self, img, txt):
        a, b = self.image(img), self.text(txt)
        scale = self.logit_scale.exp().clamp(max=100.0)
        logits = scale.item() * a @ b.t()  #- here
#+         logits = scale * a @ b.t()
        return logits, scale.item()


def symmetric_loss(logits):
    target = torch.arange(logits.size(0))
    return 0.5 * (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target))


def paired_batch(n, world):
    latent = torch.randn(n, 8)
    img = latent @ world["img"] + 0.1 * torch.randn(n, 30)
    txt = latent @ world["txt"] + 0.1 * torch.randn(n, 20)
    return img, txt


def retrieval_at_1(model, world):
    model.eval()
    with torch.no_grad():
        logits, _ = model(*paired_batch(32, world))
    model.train()
    return (logits.argmax(1) == torch.arange(32)).float().mean().item()


torch.manual_seed(11)
world = {"img": torch.randn(8, 30), "txt": torch.randn(8, 20)}
duo = TwoTower(30, 20)
opt = torch.optim.AdamW(duo.parameters(), lr=2e-3, weight_decay=0.0)
for step in range(20):
    img, txt = paired_batch(24, world)
    logits, scale = duo(img, txt)
    loss = symmetric_loss(logits)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 10 == 0:
        print(step, round(loss.item(), 3), round(scale, 2), retrieval_at_1(duo, world))
