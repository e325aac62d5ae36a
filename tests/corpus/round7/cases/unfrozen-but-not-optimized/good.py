import torch
import torch.nn as nn


class UnfreezeCallback:
    def __init__(self, module, at_epoch, lr):
        self.module, self.at_epoch, self.lr = module, at_epoch, lr

    def on_epoch_start(self, epoch, optimizer):
        if epoch == self.at_epoch:
            self.module.requires_grad_(True)
            optimizer.add_param_group({"params": list(self.module.parameters()), "lr": self.lr})


torch.manual_seed(62)
model = nn.ModuleDict({
    "encoder": nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 8), nn.ReLU()),
    "head": nn.Linear(8, 1),
})
model["encoder"].requires_grad_(False)
optimizer = torch.optim.Adam(filter(lambda p: p.requires_grad, model.parameters()), lr=1e-2)
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
