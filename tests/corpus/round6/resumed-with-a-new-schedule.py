# /// case
# title = "The schedule starts again after a resume"
# category = "loading"
# kind = "scheduler-state-not-restored"
# kinds_also_ok = ["incomplete-resume"]
# severity = "warning"
# names = ["scheduler", "load"]
# symptom = "the rate grows again after the resume"
# symptom_check = "second.rates[-1] > first.rates[-1]"
# cause = "the scheduler's state is saved, not loaded"
# fix = "load it too"
# ///
import io

import torch
import torch.nn as nn
from torch.optim.lr_scheduler import LambdaLR


class Session:
    def __init__(self, warmup=10, total=60):
        torch.manual_seed(69)
        self.model = nn.Linear(8, 2)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        self.scheduler = LambdaLR(self.optimizer, lambda s: min((s + 1) / warmup, (total - s) / (total - warmup)))
        self.rates = []

    def run(self, steps):
        for _ in range(steps):
            x = torch.randn(20, 8)
            loss = nn.functional.cross_entropy(self.model(x), (x[:, 0] > 0).long())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.rates.append(self.scheduler.get_last_lr()[0])
            self.scheduler.step()

    def save(self, file):
        state = {k: getattr(self, k).state_dict() for k in ("model", "optimizer", "scheduler")}
        torch.save(state, file)

    def load(self, file):
        state = torch.load(file)
        for part in ("model", "optimizer"):  #- here
#+         for part in ("model", "optimizer", "scheduler"):
            getattr(self, part).load_state_dict(state[part])  #! also


file = io.BytesIO()
first = Session()
first.run(40)
first.save(file)
file.seek(0)
second = Session()
second.load(file)
second.run(20)
print(first.rates[-1], second.rates[0], second.rates[-1])
