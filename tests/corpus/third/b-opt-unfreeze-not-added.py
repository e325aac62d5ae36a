# /// case
# title = "Backbone unfrozen by a callback, optimizer holds the head only"
# category = "optimizer-wiring"
# kind = "parameters-not-in-optimizer"
# severity = "warning"
# severity_by_writer = "error"
# names = ["backbone", "optimizer"]
# difficulty = "hard"
# symptom = "After epoch 2 the backbone requires grad and gets gradients, its weights never change."
# symptom_check = "model.backbone[0].weight.requires_grad and not any(p is model.backbone[0].weight for g in trainer.optimizer.param_groups for p in g['params'])"
# cause = "The optimizer was built from the parameters that required grad at the start (the head). The unfreeze callback only flips requires_grad."
# fix = "Add the unfrozen parameters to the optimizer with add_param_group."
# evidence = [{ url = "https://github.com/facebookresearch/mmf/issues/104" }, { url = "https://github.com/ultralytics/yolov5/issues/1213" }]
# ///
"""Transfer learning with gradual unfreezing, callback style."""
import torch
import torch.nn.functional as F
from torch import nn


class Classifier(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        )
        self.head = nn.Linear(64, classes)

    def forward(self, x):
        return self.head(self.backbone(x))


class Callback:
    def on_epoch_start(self, trainer, epoch): ...

    def on_epoch_end(self, trainer, epoch): ...


class History(Callback):
    def __init__(self):
        self.rows = []

    def on_epoch_end(self, trainer, epoch):
        self.rows.append((epoch, trainer.epoch_loss))


class GradualUnfreeze(Callback):
    def __init__(self, module, at_epoch, lr):
        self.module, self.at_epoch, self.lr = module, at_epoch, lr
        self.module.requires_grad_(False)

    def on_epoch_start(self, trainer, epoch):
        if epoch == self.at_epoch:
            self.module.requires_grad_(True)  #! here
#+             trainer.optimizer.add_param_group({"params": list(self.module.parameters()), "lr": self.lr})


class Trainer:
    def __init__(self, model, callbacks, lr=1e-2):
        self.model, self.callbacks = model, callbacks
        trainable = [p for p in model.parameters() if p.requires_grad]  #! here
        self.optimizer = torch.optim.Adam(trainable, lr=lr)  #! here

    def notify(self, event, epoch):
        for cb in self.callbacks:
            getattr(cb, event)(self, epoch)

    def fit(self, x, y, epochs, batch=32):
        for epoch in range(epochs):
            self.notify("on_epoch_start", epoch)
            total = 0.0
            for xb, yb in zip(x.split(batch), y.split(batch)):
                loss = F.cross_entropy(self.model(xb), yb)
                self.optimizer.zero_grad()  #! also
                loss.backward()
                self.optimizer.step()  #! also
                total += loss.item() * len(xb)
            self.epoch_loss = total / len(x)
            self.notify("on_epoch_end", epoch)


torch.manual_seed(0)
y = torch.randint(0, 3, (128,))
x = 0.3 * torch.randn(128, 1, 12, 12)
for c in range(3):
    x[y == c, :, 4 * c : 4 * c + 4] += 1.0
model = Classifier()
history = History()
trainer = Trainer(model, [GradualUnfreeze(model.backbone, at_epoch=2, lr=3e-3), history])  #! also
trainer.fit(x, y, epochs=4)
print(history.rows)
