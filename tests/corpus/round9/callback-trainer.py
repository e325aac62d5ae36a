# /// case
# title = "A history callback keeps the loss tensors themselves"
# category = "retention"
# kind = "loss-tensor-kept"
# kinds_also_ok = ["graph-retained-in-history", "metric-keeps-graph", "missing-item"]
# severity = "warning"
# names = ["batches", "LossHistory", "loss"]
# symptom = "memory grows with every batch: each loss keeps its graph's nodes alive"
# symptom_check = "any(getattr(l, 'grad_fn', None) is not None for l in trainer.history.batches)"
# cause = "The list holds tensors with a grad_fn for as long as the trainer lives."
# fix = "append loss.item()"
# ///
import torch
import torch.nn as nn


class Callback:
    def on_epoch_start(self, trainer): ...
    def on_batch_end(self, trainer, loss): ...
    def on_epoch_end(self, trainer): ...


class LossHistory(Callback):
    def __init__(self, window=8):
        self.batches, self.epochs, self.window = [], [], window  #! also

    def on_batch_end(self, trainer, loss):
        self.batches.append(loss)  #- here
#+         self.batches.append(loss.item())

    def on_epoch_end(self, trainer):
        recent = self.batches[-self.window:]  #! also
        self.epochs.append(float(sum(recent)) / len(recent))


class Printer(Callback):
    def on_epoch_start(self, trainer):
        self.epoch = getattr(self, "epoch", -1) + 1

    def on_epoch_end(self, trainer):
        print(f"epoch {self.epoch}: {trainer.history.epochs[-1]:.4f}")


class Trainer:
    def __init__(self, model, optimizer, criterion, callbacks=()):
        self.model, self.optimizer, self.criterion = model, optimizer, criterion
        self.history = LossHistory()
        self.callbacks = [self.history, *callbacks]

    def notify(self, event, *args):
        for callback in self.callbacks:
            getattr(callback, event)(self, *args)

    def fit(self, batches, epochs):
        for _ in range(epochs):
            self.notify("on_epoch_start")
            for x, y in batches:
                self.optimizer.zero_grad()
                loss = self.criterion(self.model(x), y)  #! also
                loss.backward()
                self.optimizer.step()
                self.notify("on_batch_end", loss)  #! here
            self.notify("on_epoch_end")


torch.manual_seed(2)
x = torch.randn(64, 1, 12, 12)
y = (x[:, 0, :6].mean((1, 2)) > x[:, 0, 6:].mean((1, 2))).long()
net = nn.Sequential(
    nn.Conv2d(1, 6, 3, padding=1), nn.BatchNorm2d(6), nn.SiLU(), nn.AvgPool2d(4), nn.Flatten(), nn.Linear(54, 2)
)
trainer = Trainer(net, torch.optim.RMSprop(net.parameters(), lr=1e-3), nn.CrossEntropyLoss(label_smoothing=0.1), [Printer()])
trainer.fit(list(zip(x.split(16), y.split(16))), epochs=5)
