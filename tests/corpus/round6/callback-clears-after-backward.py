# /// case
# title = "A callback clears the gradients before the step"
# category = "accumulation"
# kind = "zero-grad-before-step"
# kinds_also_ok = ["gradient-cleared-before-step", "step-without-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["zero_grad", "FreshGradients"]
# symptom = "the weights never change"
# symptom_check = "torch.equal(first, model.weight)"
# cause = "the gradients are cleared between backward and step"
# fix = "clear at the end of the step"
# evidence = [
#     { url = "https://github.com/patrickloeber/pytorchTutorial/issues/19", title = "optimizer.zero_grad() before loss.backward()?" },
# ]
# ///
import torch
import torch.nn as nn


class Callback:
    def on_batch_start(self, run): ...
    def on_backward_end(self, run): ...
    def on_step_end(self, run): ...


class GradLogger(Callback):
    def __init__(self):
        self.norms = []

    def on_backward_end(self, run):  #! here
        grads = [p.grad.flatten() for p in run.model.parameters() if p.grad is not None]
        self.norms.append(torch.cat(grads).norm().item())


class FreshGradients(Callback):
    def on_backward_end(self, run):  #-
#+     def on_step_end(self, run):
        run.optimizer.zero_grad()  #! also


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
            self.optimizer.step()  #! also
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
