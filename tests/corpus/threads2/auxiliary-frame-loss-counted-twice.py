# /// case
# title = "Auxiliary term is inside one entry and added again"
# category = "accumulation"
# kind = "loss-counted-twice"
# kinds_also_ok = ["gradient-doubled"]
# severity = "warning"
# names = ["auxiliary_loss", "se3_vf_loss", "train_loss"]
# symptom = "the auxiliary term has twice its weight in the gradient"
# symptom_check = "abs(module.last['train'] - module.last['trans_loss'] - module.last['rots_vf_loss'] - 2 * module.last['auxiliary_loss']) < 1e-5"
# cause = "it is added in model_step() and in training_step()"
# fix = "add it in one place"
# evidence = [
#     { url = "https://github.com/microsoft/protein-frame-flow/issues/23", title = "Auxiliary loss is counted twice in the loss" },
# ]
# ///
from types import SimpleNamespace

import torch
from torch import nn


class FlowModule:
    def __init__(self, cfg):
        self.cfg = cfg
        self.model = nn.Sequential(nn.Linear(7, 32), nn.SiLU(), nn.Linear(32, 6))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr)

    def model_step(self, batch):
        t = torch.rand(len(batch), 1)
        noise = torch.randn_like(batch)
        x_t = (1 - t) * noise + t * batch
        pred = self.model(torch.cat([x_t, t], 1))
        error = (pred - (batch - noise)).pow(2)
        trans_loss = error[:, :3].mean()
        rots_vf_loss = error[:, 3:].mean()
        auxiliary_loss = (t > self.cfg.aux_from).float().mul(torch.cdist(pred, pred).mean(1, keepdim=True)).mean()
        se3_vf_loss = trans_loss + rots_vf_loss
        se3_vf_loss = se3_vf_loss + auxiliary_loss  #- here
        return {
            "trans_loss": trans_loss,
            "rots_vf_loss": rots_vf_loss,
            "auxiliary_loss": auxiliary_loss,
            "se3_vf_loss": se3_vf_loss,
        }

    def training_step(self, batch):
        losses = self.model_step(batch)
        train_loss = losses[self.cfg.loss] + losses["auxiliary_loss"]  #! here
        self.optimizer.zero_grad()
        train_loss.backward()  #! also
        self.optimizer.step()
        self.last = {k: v.item() for k, v in losses.items()} | {"train": train_loss.item()}


torch.manual_seed(14)
module = FlowModule(SimpleNamespace(lr=1e-3, loss="se3_vf_loss", aux_from=0.25))
for _ in range(6):
    module.training_step(torch.randn(24, 6))
print(module.last)
