import torch
import torch.nn as nn


class Unfreezer:
    def __init__(self, optimizer, stages, lr, decay=0.5):
        self.optimizer, self.stages, self.lr, self.decay = optimizer, list(stages), lr, decay

    def next_stage(self):
        if self.stages:
            module = self.stages.pop()
            module.requires_grad_(True)
            self.optimizer.add_param_group({"params": module.parameters(), "lr": self.lr})
            self.lr *= self.decay


torch.manual_seed(114)
stages = [nn.Sequential(nn.Linear(8, 16), nn.ReLU()), nn.Sequential(nn.Linear(16, 16), nn.ReLU())]
head = nn.Linear(16, 2)
model = nn.Sequential(*stages, head)
for stage in stages:
    stage.requires_grad_(False)
optimizer = torch.optim.Adam(head.parameters(), lr=1e-2)
unfreezer = Unfreezer(optimizer, stages, lr=5e-3)
x = torch.randn(64, 8)
y = (x[:, 0].abs() > x[:, 1].abs()).long()
for epoch in range(4):
    if epoch in (1, 2):
        unfreezer.next_stage()
    for rows in torch.randperm(64).split(16):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
    print(epoch, len(optimizer.param_groups), loss.item())
