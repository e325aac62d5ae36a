# /// case
# title = "The checkpoint has no schedule"
# category = "optimizer"
# kind = "scheduler-state-not-restored"
# kinds_also_ok = ["resume-incomplete"]
# severity = "warning"
# names = ["lr_scheduler", "load_checkpoint"]
# symptom = "a resumed run warms up again"
# symptom_check = "rates_resumed != rates_straight[3:]"
# cause = "the schedule's state is neither saved nor loaded"
# fix = "save and load it"
# evidence = [
#     { url = "https://github.com/PolymathicAI/the_well/pull/63", title = "fixed scheduler checkpoint loading, typo" },
#     { url = "https://github.com/torch-points3d/torch-points3d/pull/630", title = "Fix LR Checkpoint Resuming" },
# ]
# ///
import io

import torch
import torch.nn as nn


class Trainer:
    def __init__(self, model, max_epoch, lr=4e-3):
        self.model, self.max_epoch, self.starting_epoch = model, max_epoch, 0
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        warm = torch.optim.lr_scheduler.LinearLR(self.optimizer, start_factor=0.1, total_iters=2)
        decay = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=max_epoch - 2)
        self.lr_scheduler = torch.optim.lr_scheduler.SequentialLR(self.optimizer, [warm, decay], milestones=[2])
        self.rates = []

    def save_model(self, epoch, file):
        torch.save({
            "epoch": epoch,
            "model_state_dict": self.model.state_dict(),
            "optimizer_state_dict": self.optimizer.state_dict(),  #! also
#+             "lr_scheduler_state_dict": self.lr_scheduler.state_dict(),
        }, file)

    def load_checkpoint(self, file):
        checkpoint = torch.load(file, weights_only=False)
        self.model.load_state_dict(checkpoint["model_state_dict"])
        self.optimizer.load_state_dict(checkpoint["optimizer_state_dict"])  #! here
#+         self.lr_scheduler.load_state_dict(checkpoint["lr_scheduler_state_dict"])
        self.starting_epoch = checkpoint["epoch"] + 1

    def train(self, until):
        for epoch in range(self.starting_epoch, until):
            self.rates.append(round(self.optimizer.param_groups[0]["lr"], 8))
            for _ in range(3):
                field = torch.randn(8, 1, 6, 6)
                loss = (self.model(field) - field.roll(1, -1)).square().mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            self.lr_scheduler.step()
        return epoch


def fno():
    torch.manual_seed(13)
    return nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.GELU(), nn.Conv2d(8, 1, 1))


whole = Trainer(fno(), 8)
whole.train(8)
file = io.BytesIO()
first = Trainer(fno(), 8)
first.save_model(first.train(3), file)
file.seek(0)
second = Trainer(fno(), 8)
second.load_checkpoint(file)
second.train(8)
rates_straight, rates_resumed = whole.rates, second.rates
print(rates_straight, rates_resumed)
