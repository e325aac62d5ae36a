# /// case
# title = "Gradients are clipped in training_step, before backward"
# category = "optimizer"
# kind = "clip-before-backward"
# kinds_also_ok = ["clip-without-gradient", "clip-without-effect", "clip-after-step"]
# severity = "warning"
# names = ["clip_grad_norm_", "training_step"]
# symptom = "the optimizer's gradient is never capped"
# symptom_check = "min(loop.norms) > 0.06"
# cause = "training_step runs before backward, and zero_grad comes in between"
# fix = "clip in the hook after backward"
# evidence = [
#     { url = "https://github.com/simchowitzlabpublic/nano-world-model/pull/22", title = "Clip gradients in configure_gradient_clipping instead of training_step" },
# ]
# ///
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class TrainConfig:
    latent: int = 6
    gradient_clip_norm: float = 0.05
    lr: float = 1e-2


class WorldModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.dynamics = nn.Sequential(nn.Linear(cfg.latent + 2, 32), nn.SiLU(), nn.Linear(32, cfg.latent))

    def training_step(self, batch):
        state, action, target = batch
        pred = state + self.dynamics(torch.cat([state, action], -1))
        loss = (pred - target).pow(2).sum(-1).mean()
        nn.utils.clip_grad_norm_(self.parameters(), self.cfg.gradient_clip_norm)  #- here
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.cfg.lr)

    def on_before_optimizer_step(self):
#+         nn.utils.clip_grad_norm_(self.parameters(), self.cfg.gradient_clip_norm)
        self.seen = float(torch.stack([p.grad.norm() for p in self.parameters()]).norm())


class Loop:
    """Calls the hooks in the order training_step, backward, step."""

    def __init__(self, module):
        self.module, self.optimizer = module, module.configure_optimizers()
        self.norms = []

    def fit(self, batches):
        for batch in batches:
            loss = self.module.training_step(batch)
            self.optimizer.zero_grad()
            loss.backward()
            self.module.on_before_optimizer_step()
            self.optimizer.step()  #! also
            self.norms.append(self.module.seen)


torch.manual_seed(51)
loop = Loop(WorldModel(TrainConfig()))
loop.fit([(torch.randn(8, 6), torch.randn(8, 2), torch.randn(8, 6)) for _ in range(5)])
print(loop.norms)
