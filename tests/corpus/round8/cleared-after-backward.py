# /// case
# title = "The hook that runs after the backward clears the gradients before the step"
# category = "accumulation"
# kind = "zero-grad-before-step"
# kinds_also_ok = ["gradient-cleared-before-step", "wrong-order"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["zero_grad", "backward", "step"]
# symptom = "no parameter ever changes"
# symptom_check = "all(torch.equal(a, b) for a, b in zip(model.parameters(), initial))"
# cause = "zero_grad() is called between backward() and step(), so that the optimizer finds no gradient."
# fix = "clear after the step"
# ///
import torch
import torch.nn as nn


class Callback:
    def before_batch(self, trainer): ...
    def after_backward(self, trainer): ...
    def after_step(self, trainer): ...


class GradientHygiene(Callback):
    def after_backward(self, trainer):  #- here
#+     def after_step(self, trainer):
        trainer.optimizer.zero_grad(set_to_none=True)  #! here


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
            self.call("after_backward")  #! also
            self.optimizer.step()  #! also
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
