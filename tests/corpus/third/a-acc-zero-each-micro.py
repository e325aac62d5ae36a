# /// case
# title = "zero_grad() at the top of every micro-batch discards the accumulated gradient"
# category = "accumulation"
# kind = "accumulation-lost"
# kinds_also_ok = ["zero-grad-before-step"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["zero_grad", "opt", "accumulate"]
# difficulty = "easy"
# symptom = "only the last micro-batch of each group contributes"
# symptom_check = "(lambda n: n[\"zero\"] > n[\"step\"])(trainer.counts)"
# cause = "zero_grad() is called per micro-batch while step() is called once per group"
# fix = "clear the gradients only after a step"
# evidence = [{ url = "https://github.com/allenai/open-instruct/pull/1498" }, { url = "https://github.com/eriklindernoren/PyTorch-YOLOv3/pull/313" }]
# ///
"""Image regression with gradient accumulation and a small event counter."""
from collections import Counter
import torch
import torch.nn as nn


class Trainer:
    def __init__(self, model, lr=1e-3, accumulate=3):
        self.model, self.accumulate = model, accumulate
        self.opt = torch.optim.Adam(model.parameters(), lr=lr)
        self.counts = Counter()
        self.opt.register_step_post_hook(lambda *_: self.counts.update(step=1))

    def clear(self):
        self.counts.update(zero=1)
        self.opt.zero_grad()  #! also

    def fit(self, batches):
        for i, (x, y) in enumerate(batches):  #! also
            self.clear()  #- here
            loss = nn.functional.mse_loss(self.model(x), y) / self.accumulate
            loss.backward()  #! also
            if (i + 1) % self.accumulate == 0:
                self.opt.step()  #! also
#+                 self.clear()
        return loss.item() * self.accumulate


def images(groups):
    for _ in range(groups):
        x = torch.rand(12, 1, 10, 10)
        yield x, x.flatten(1).std(dim=1, keepdim=True)


torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.Conv2d(6, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 1))
trainer = Trainer(net)
print(trainer.fit(images(30)), dict(trainer.counts))
