# /// case
# title = "Gradual unfreezing sets an attribute on the module instead of its parameters"
# category = "requires-grad"
# kind = "unfreeze-without-effect"
# kinds_also_ok = ["freeze-without-effect", "parameters-frozen-by-mistake", "all-parameters-frozen"]
# severity = "warning"
# names = ["requires_grad", "backbone", "trainer", "GradualUnfreeze"]
# difficulty = "medium"
# symptom = "the backbone stays frozen for the whole run, no message"
# symptom_check = "not any(p.requires_grad for p in trainer.model.backbone.parameters())"
# cause = "nn.Module has no requires_grad property; the assignment creates a plain attribute and leaves the parameters frozen"
# fix = "call requires_grad_(True) on the module"
# evidence = [{ url = "https://github.com/CSCYQJ/MICCAI23-ProtoContra-SFDA/issues/18" }, { url = "https://discuss.pytorch.org/t/requires-grad-doesnt-propagate-to-the-parameters-of-the-module/9979" }]
# ///
import torch
from torch import nn


class Callback:
    def on_epoch_start(self, trainer, epoch):
        pass

    def on_step_end(self, trainer, loss):
        pass


class GradualUnfreeze(Callback):
    """Trains the head alone first, then lets the backbone follow."""

    def __init__(self, at_epoch, lr_scale=0.1):
        self.at_epoch = at_epoch
        self.lr_scale = lr_scale

    def on_epoch_start(self, trainer, epoch):
        if epoch != self.at_epoch:
            return
        trainer.model.backbone.requires_grad = True  #- here
#+         trainer.model.backbone.requires_grad_(True)
        for group in trainer.opt.param_groups:
            if group["tag"] == "backbone":
                group["lr"] = trainer.lr * self.lr_scale


class Recorder(Callback):
    def __init__(self):
        self.values = []

    def on_step_end(self, trainer, loss):
        self.values.append(loss.item())


class SmallNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
        self.head = nn.Linear(16, 1)

    def forward(self, x):
        return self.head(self.backbone(x)).squeeze(-1)


class Trainer:
    def __init__(self, model, lr, callbacks):
        self.model, self.lr, self.callbacks = model, lr, callbacks
        self.model.backbone.requires_grad_(False)  #! also
        self.opt = torch.optim.Adam([  #! also
            {"params": model.backbone.parameters(), "lr": lr, "tag": "backbone"},  #! also
            {"params": model.head.parameters(), "lr": lr, "tag": "head"},
        ])
        self.criterion = nn.MSELoss()

    def emit(self, hook, *args):
        for cb in self.callbacks:
            getattr(cb, hook)(self, *args)

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            self.emit("on_epoch_start", epoch)
            for x, y in loader:
                loss = self.criterion(self.model(x), y)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                self.emit("on_step_end", loss)


torch.manual_seed(0)
X = torch.randn(128, 12)
Y = torch.sin(X[:, 0] * 2) + X[:, 1] * X[:, 2]
loader = [(X[i:i + 32], Y[i:i + 32]) for i in range(0, 128, 32)]

recorder = Recorder()
trainer = Trainer(SmallNet(), 1e-2, [GradualUnfreeze(at_epoch=2), recorder])
trainer.fit(loader, epochs=6)
print(f"{recorder.values[0]:.3f} -> {recorder.values[-1]:.3f}")
