import torch
import torch.nn as nn


class Callback:
    def before_batch(self, trainer): ...
    def after_backward(self, trainer): ...
    def after_step(self, trainer): ...


class GradientHygiene(Callback):
    def after_backward(self, trainer):
        trainer.optimizer.zero_grad(set_to_none=True)


class Smoothed(Callback):
    def __init__(self):
        self.value = None

    def after_step(self, trainer):
        now = trainer.loss.item()
        self.value = now if self.value is None else 0.8 * self.value + 0.2 * now


class Trainer:
    def __init__(self, model, optimizer, callbacks):
        self.model, self.optimizer, self.callbacks = model, optimizer, callbacks
        self.loss = None

    def call(self, name):
        for callback in self.callbacks:
            getattr(callback, name)(self)

    def fit(self, batches):
        for x, y in batches:
            self.call("before_batch")
            self.loss = nn.functional.mse_loss(self.model(x), y)
            self.loss.backward()
            self.call("after_backward")
            self.optimizer.step()
            self.call("after_step")


torch.manual_seed(66)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
initial = [p.detach().clone() for p in model.parameters()]
smoothed = Smoothed()
trainer = Trainer(model, torch.optim.Adam(model.parameters(), lr=3e-3), [GradientHygiene(), smoothed])
x = torch.randn(128, 8)
y = x[:, :2].cumsum(1)
for epoch in range(3):
    trainer.fit(zip(x.split(32), y.split(32)))
    print(epoch, smoothed.value)
