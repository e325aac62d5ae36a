import torch
import torch.nn as nn


class Meter:
    def __init__(self, momentum=0.95):
        self.momentum = momentum
        self.value = None

    def update(self, x):
        if self.value is None:
            self.value = x
        else:
            self.value = self.momentum * self.value + (1 - self.momentum) * x


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
        self.meter.update(loss)
        return loss.item()


torch.manual_seed(40)
trainer = Trainer(nn.Sequential(nn.Linear(7, 20), nn.SiLU(), nn.Linear(20, 1)))
for i in range(30):
    x = torch.randn(16, 7)
    trainer.step(x, x.abs().sum(1))
    if i % 10 == 9:
        print(i, float(trainer.meter.value))
