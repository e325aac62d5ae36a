# /// case
# title = "Layers that are unfrozen later belong to no optimizer"
# category = "optimizer"
# kind = "parameter-not-in-optimizer"
# kinds_also_ok = ["stale-optimizer"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["unfreeze", "requires_grad", "optimizer"]
# symptom = "after unfreezing, the backbone has gradients but never moves"
# symptom_check = "net.backbone[0].weight.grad is not None and torch.equal(before, net.backbone[0].weight)"
# cause = "the optimizer was made of what was trainable then"
# fix = "add_param_group when unfreezing"
# evidence = [
#     { url = "https://github.com/luxonis/luxonis-train/pull/432", title = "Fix invariants dropped by the parameter-groups rework" },
#     { url = "https://github.com/fastai/fastai/issues/2133", title = "Redundant code in Learner.freeze and Learner.unfreeze" },
# ]
# ///
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(14, 28), nn.ReLU(), nn.Linear(28, 14), nn.ReLU())
        self.head = nn.Linear(14, 3)

    def forward(self, x):
        return self.head(self.backbone(x))


class FreezeUnfreeze:
    def __init__(self, module, unfreeze_epoch, lr_factor=0.1):
        self.module, self.epoch, self.lr_factor = module, unfreeze_epoch, lr_factor
        self.module.requires_grad_(False)

    def on_epoch_start(self, trainer, epoch):
        if epoch == self.epoch:
            self.module.requires_grad_(True)  #! here
#+             trainer.optimizer.add_param_group({"params": list(self.module.parameters()), "lr": trainer.lr * self.lr_factor})


class Trainer:
    def __init__(self, net, callbacks, lr=1e-2, epochs=4):
        self.net, self.callbacks, self.lr, self.epochs = net, callbacks, lr, epochs
        self.optimizer = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=lr)  #! also

    def fit(self, x, y):
        for epoch in range(self.epochs):
            for callback in self.callbacks:
                callback.on_epoch_start(self, epoch)
            for idx in torch.randperm(len(x)).split(25):
                loss = nn.functional.cross_entropy(self.net(x[idx]), y[idx])
                self.net.zero_grad()
                loss.backward()
                self.optimizer.step()
            print(epoch, loss.item())


torch.manual_seed(58)
net = Net()
before = net.backbone[0].weight.detach().clone()
x = torch.randn(100, 14)
Trainer(net, [FreezeUnfreeze(net.backbone, unfreeze_epoch=2)]).fit(x, x[:, :3].argmax(1))
