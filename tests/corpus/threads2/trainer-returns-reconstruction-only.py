# /// case
# title = "Sparse autoencoder returns the reconstruction term instead of the sum"
# category = "graph-break"
# kind = "constant-loss-term"
# kinds_also_ok = ["loss-term-not-in-root", "loss-not-in-backward"]
# severity = "warning"
# names = ["aux_loss", "loss", "reconstruction"]
# symptom = "the auxiliary term is logged and never part of a backward call"
# symptom_check = "returned.grad_fn.name() == 'MeanBackward0'"
# cause = "the method returns the first term"
# fix = "return loss"
# evidence = [
#     { url = "https://github.com/oclivegriffin/crosscode/pull/3", title = "fix: AuxK loss carries no gradient, now backprop combined loss, not reconstruction only" },
# ]
# ///
from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass
class SAEConfig:
    d_in: int = 16
    n_latents: int = 48
    k: int = 4
    k_aux: int = 8
    lambda_aux: float = 0.5
    dead_after: int = 2
    log_every: int = 2


class TopKSAE(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.enc = nn.Linear(cfg.d_in, cfg.n_latents)
        self.dec = nn.Linear(cfg.n_latents, cfg.d_in, bias=False)

    @staticmethod
    def keep(pre, k):
        values, idx = pre.topk(k, dim=-1)
        return torch.zeros_like(pre).scatter(-1, idx, values.relu())


@dataclass
class Trainer:
    cfg: SAEConfig
    sae: TopKSAE
    log: list = field(default_factory=list)

    def __post_init__(self):
        self.optimizer = torch.optim.Adam(self.sae.parameters(), lr=1e-3)
        self.idle = torch.zeros(self.cfg.n_latents)

    def loss_and_log(self, x, step):
        pre = self.sae.enc(x)
        latents = self.sae.keep(pre, self.cfg.k)
        residual = x - self.sae.dec(latents)
        self.idle = torch.where(latents.sum(0) > 0, 0.0, self.idle + 1)
        dead = self.idle >= self.cfg.dead_after
        revived = self.sae.keep(pre.masked_fill(~dead, -1e4), self.cfg.k_aux)
        self.aux_loss = (residual.detach() - self.sae.dec(revived)).pow(2).mean()
        reconstruction = residual.pow(2).mean()
        loss = reconstruction + self.cfg.lambda_aux * self.aux_loss  #! also
        if step % self.cfg.log_every == 0:
            self.log.append({"loss": loss.item(), "aux": self.aux_loss.item()})
        return reconstruction  #- here
#+         return loss

    def run(self, steps=8):
        for step in range(steps):
            loss = self.loss_and_log(torch.randn(32, self.cfg.d_in), step)
            self.optimizer.zero_grad()
            loss.backward()  #! also
            self.optimizer.step()
        return loss


torch.manual_seed(8)
trainer = Trainer(SAEConfig(), TopKSAE(SAEConfig()))
returned = trainer.run()
print(returned.item(), trainer.log[-1])
