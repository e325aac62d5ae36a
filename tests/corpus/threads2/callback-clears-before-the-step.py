# /// case
# title = "Callback after backward clears the gradients before the step"
# category = "accumulation"
# kind = "gradient-cleared-before-step"
# kinds_also_ok = ["zero-grad-before-step", "step-without-gradient"]
# severity = "warning"
# names = ["on_after_backward", "zero_grad"]
# symptom = "no parameter ever moves"
# symptom_check = "all(torch.equal(a, b) for a, b in zip(before, model.parameters()))"
# cause = "the callback runs between backward() and step()"
# fix = "clear in on_batch_end"
# evidence = [
#     { url = "https://github.com/sacmehta/EdgeNets/issues/14", title = "Zeroing out the gradient before calling optimizer.step() in train_eval_seg.py" },
# ]
# ///
import torch
from torch import nn


class Callback:
    def on_batch_start(self, trainer): ...
    def on_after_backward(self, trainer): ...
    def on_batch_end(self, trainer): ...


class GradNorms(Callback):
    def __init__(self):
        self.values = []

    def on_after_backward(self, trainer):
        total = sum(p.grad.pow(2).sum() for p in trainer.model.parameters() if p.grad is not None)
        self.values.append(float(total) ** 0.5)


class MemorySaver(Callback):
    """Releases gradient memory between batches."""

    def on_after_backward(self, trainer):  #- also
#+     def on_batch_end(self, trainer):
        trainer.optimizer.zero_grad(set_to_none=True)  #! here


class Trainer:
    def __init__(self, model, optimizer, callbacks):
        self.model, self.optimizer, self.callbacks = model, optimizer, callbacks

    def call(self, event):
        for callback in self.callbacks:
            getattr(callback, event)(self)

    def fit(self, batches):
        criterion = nn.CrossEntropyLoss()
        self.model.train()
        for inputs, labels in batches:
            self.call("on_batch_start")
            loss = criterion(self.model(inputs), labels)
            loss.backward()
            self.call("on_after_backward")
            self.optimizer.step()  #! also
            self.call("on_batch_end")
        return loss.item()


torch.manual_seed(9)
model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3))
before = [p.detach().clone() for p in model.parameters()]
batches = [(torch.randn(16, 10), torch.randint(0, 3, (16,))) for _ in range(6)]
norms = GradNorms()
trainer = Trainer(model, torch.optim.SGD(model.parameters(), lr=0.1), [norms, MemorySaver()])
print(trainer.fit(batches), norms.values[-1])
