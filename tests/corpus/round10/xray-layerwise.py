# /// case
# title = "The callback adds another scaling hook at the start of every epoch"
# category = "hook"
# kind = "hook-registered-repeatedly"
# kinds_also_ok = ["hooks-accumulate", "hook-registered-in-loop", "gradient-scaled-repeatedly"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["register_hook", "on_epoch_start", "LayerwiseRates"]
# symptom = "the early layers learn slower with each epoch and soon not at all"
# symptom_check = "max(len(p._backward_hooks or ()) for p in net.parameters()) > 1"
# cause = "Hooks stay registered: in epoch n the gradient is multiplied n times by the factor."
# fix = "register the hooks once when the fit starts"
# ///
import torch
import torch.nn.functional as F
from torch import nn


class Callback:
    def on_fit_start(self, trainer, epoch):
        pass

    def on_epoch_start(self, trainer, epoch):
        pass

    def on_epoch_end(self, trainer, epoch):
        pass


class LayerwiseRates(Callback):
    def __init__(self, factors):
        self.factors = factors

    def on_epoch_start(self, trainer, epoch):  #-
#+     def on_fit_start(self, trainer, epoch):
        for name, factor in self.factors.items():  #! also
            for param in getattr(trainer.model, name).parameters():
                param.register_hook(lambda grad, factor=factor: factor * grad)  #! here


class Report(Callback):
    def on_epoch_end(self, trainer, epoch):
        recent = trainer.losses[-trainer.batches:]
        print(f"epoch {epoch}: {sum(recent) / len(recent):.4f}")


class ChestNet(nn.Module):
    def __init__(self, findings=3):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.ReLU())
        self.body = nn.Sequential(nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU())
        self.head = nn.Linear(16 * 4, findings)

    def forward(self, x):
        return self.head(F.adaptive_avg_pool2d(self.body(self.stem(x)), 2).flatten(1))


class Trainer:
    def __init__(self, model, callbacks, lr=0.1, batch=32):
        self.model, self.callbacks, self.batch = model, callbacks, batch
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.losses, self.batches = [], 0

    def fit(self, x, y, epochs):
        self.batches = -(-len(x) // self.batch)
        for callback in self.callbacks:
            callback.on_fit_start(self, 0)
        for epoch in range(epochs):
            for callback in self.callbacks:
                callback.on_epoch_start(self, epoch)  #! also
            for rows in torch.randperm(len(x)).split(self.batch):
                loss = F.binary_cross_entropy_with_logits(self.model(x[rows]), y[rows])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.losses.append(loss.item())
            for callback in self.callbacks:
                callback.on_epoch_end(self, epoch)


torch.manual_seed(50)
y = (torch.rand(192, 3) < 0.4).float()
quadrants = torch.zeros(3, 16, 16)
for k, (r, c) in enumerate([(0, 0), (0, 8), (8, 0)]):
    quadrants[k, r + 1:r + 7, c + 1:c + 7] = torch.randn(6, 6)
x = torch.einsum("nk,khw->nhw", y, quadrants).unsqueeze(1) + 0.3 * torch.randn(192, 1, 16, 16)
net = ChestNet()
Trainer(net, [LayerwiseRates({"stem": 0.3, "body": 0.5}), Report()]).fit(x, y, epochs=6)
