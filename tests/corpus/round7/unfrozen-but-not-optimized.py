# /// case
# title = "Gradual unfreezing sets the flags but the optimizer was filtered at the start"
# category = "optimizer"
# kind = "parameter-not-in-optimizer"
# kinds_also_ok = ["unfrozen-not-in-optimizer", "stale-optimizer-parameters"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["UnfreezeCallback", "optimizer", "add_param_group"]
# symptom = "the encoder gets gradients from epoch 2 on but is never stepped, and they pile up"
# symptom_check = 'not any(p in optimizer.state for p in model["encoder"].parameters())'
# cause = "the optimizer holds only what was trainable when it was built"
# fix = "add_param_group"
# ///
import torch
import torch.nn as nn


class UnfreezeCallback:
    def __init__(self, module, at_epoch, lr):
        self.module, self.at_epoch, self.lr = module, at_epoch, lr

    def on_epoch_start(self, epoch, optimizer):
        if epoch == self.at_epoch:
            self.module.requires_grad_(True)  #! here
#+             optimizer.add_param_group({"params": list(self.module.parameters()), "lr": self.lr})


torch.manual_seed(62)
model = nn.ModuleDict({
    "encoder": nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 8), nn.ReLU()),
    "head": nn.Linear(8, 1),
})
model["encoder"].requires_grad_(False)
optimizer = torch.optim.Adam(filter(lambda p: p.requires_grad, model.parameters()), lr=1e-2)  #! also
callbacks = [UnfreezeCallback(model["encoder"], at_epoch=2, lr=1e-3)]

inputs = torch.randn(40, 12)
targets = inputs[:, :3].sum(1, keepdim=True)
for epoch in range(5):
    for callback in callbacks:
        callback.on_epoch_start(epoch, optimizer)
    for rows in torch.randperm(40).split(10):
        optimizer.zero_grad()
        prediction = model["head"](model["encoder"](inputs[rows]))
        loss = (prediction - targets[rows]).abs().mean()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
