import torch
import torch.nn as nn


class Callback:
    def on_batch_start(self, run): ...
    def on_backward_end(self, run): ...
    def on_step_end(self, run): ...


class GradLogger(Callback):
    def __init__(self):
        self.norms = []

    def on_backward_end(self, run):
        grads = [p.grad.flatten() for p in run.model.parameters() if p.grad is not None]
        self.norms.append(torch.cat(grads).norm().item())


class FreshGradients(Callback):
    def on_backward_end(self, run):
        run.optimizer.zero_grad()


class Run:
    def __init__(self, model, optimizer, callbacks):
        self.model, self.optimizer, self.callbacks = model, optimizer, callbacks

    def call(self, name):
        for callback in self.callbacks:
            getattr(callback, name)(self)

    def fit(self, batches):
        for x, y in batches:
            self.call("on_batch_start")
            self.loss = nn.functional.mse_loss(self.model(x), y)
            self.loss.backward()
            self.call("on_backward_end")
            self.optimizer.step()
            self.call("on_step_end")


torch.manual_seed(2)
model = nn.Linear(4, 1)
first = model.weight.detach().clone()
logger = GradLogger()
run = Run(model, torch.optim.Adam(model.parameters(), lr=1e-2), [logger, FreshGradients()])
x = torch.randn(60, 4)
y = x.sum(1, keepdim=True)
run.fit([(x[i::6], y[i::6]) for i in range(6)])
print(run.loss.item(), logger.norms[-1])
