# /// case
# title = "Collected exceptions keep the frames, and with them the graphs, of failed steps"
# category = "retention-leak"
# kind = "graph-retained-list"
# kinds_also_ok = ["graph-retained", "graph-retained-by-exception"]
# severity = "warning"
# names = ["failures", "err", "loss", "append"]
# difficulty = "hard"
# symptom = "every rejected batch stays in memory with its graph"
# symptom_check = "any(torch.is_tensor(v) and v.requires_grad for e in trainer.failures if getattr(e[1], \"__traceback__\", None) for f, _ in __import__(\"traceback\").walk_tb(e[1].__traceback__) for v in f.f_locals.values())"
# cause = "an exception object refers to its traceback, whose frames hold logits and loss of the failed step"
# fix = "store the message only"
# evidence = [{ url = "https://github.com/pytorch/pytorch/issues/27600" }, { url = "https://github.com/pytorch/pytorch/issues/10348" }, { url = "https://github.com/huggingface/trl/pull/5776" }]
# ///
"""Training loop that rejects batches with an implausible loss and goes on."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class OutlierBatch(RuntimeError):
    pass


class RobustTrainer:
    def __init__(self, model, lr, limit):
        self.model, self.limit = model, limit
        self.opt = torch.optim.Adam(model.parameters(), lr=lr)
        self.failures = []
        self.losses = []

    def step(self, x, y):
        pred = self.model(x)
        loss = F.mse_loss(pred, y)
        if loss.item() > self.limit:
            raise OutlierBatch(f"loss {loss.item():.1f} above {self.limit}")  #! also
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()

    def fit(self, batches):
        for number, (x, y) in enumerate(batches):
            try:
                self.losses.append(self.step(x, y))
            except OutlierBatch as err:  #! also
                self.failures.append((number, err))  #- here
#+                 self.failures.append((number, str(err)))
        return self


def stream(n, every=6):
    for i in range(n):
        x = torch.randn(32, 5)
        y = x @ torch.tensor([[1.0], [-1.0], [0.5], [0.0], [2.0]])
        yield (x, y * 40) if i % every == every - 1 else (x, y)


torch.manual_seed(0)
trainer = RobustTrainer(nn.Sequential(nn.Linear(5, 32), nn.Tanh(), nn.Linear(32, 1)), 1e-2, 50.0)
trainer.fit(stream(36))
print(f"{len(trainer.losses)} steps, {len(trainer.failures)} rejected, last loss {trainer.losses[-1]:.3f}")
