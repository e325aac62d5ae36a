# /// case
# title = "A moving average of the loss keeps all graphs"
# category = "retention"
# kind = "accumulated-graph"
# kinds_also_ok = ["memory-growth", "graph-kept-alive"]
# severity = "warning"
# names = ["meter", "value"]
# symptom = "memory grows with each step"
# symptom_check = "trainer.meter.value.grad_fn is not None"
# cause = "the average is a function of all losses since the start"
# fix = "detach the loss"
# evidence = [
#     { url = "https://github.com/pnnl/neuromancer/pull/292", title = "Fixing leaking autograd graph memory in Trainer" },
#     { url = "https://github.com/BatsResearch/labelmodels/issues/4", title = "Memory leak in training loop" },
# ]
# ///
import torch
import torch.nn as nn


class Meter:
    def __init__(self, momentum=0.95):
        self.momentum = momentum
        self.value = None

    def update(self, x):
        if self.value is None:
            self.value = x  #! also
        else:
            self.value = self.momentum * self.value + (1 - self.momentum) * x  #! also


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
        self.meter = Meter()

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = nn.functional.smooth_l1_loss(self.model(x).squeeze(-1), y)
        loss.backward()
        self.optimizer.step()
        self.meter.update(loss)  #- here
#+         self.meter.update(loss.detach())
        return loss.item()


torch.manual_seed(40)
trainer = Trainer(nn.Sequential(nn.Linear(7, 20), nn.SiLU(), nn.Linear(20, 1)))
for i in range(30):
    x = torch.randn(16, 7)
    trainer.step(x, x.abs().sum(1))
    if i % 10 == 9:
        print(i, float(trainer.meter.value))
