import torch
import torch.nn as nn
import torch.nn.functional as F


class Tuner:
    def __init__(self, body, head):
        self.net = nn.Sequential(body, head)
        body.requires_grad_(False)
        self.optimizer = torch.optim.SGD(head.parameters(), lr=0.1, momentum=0.9)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 2, gamma=0.5)

    def unfreeze(self, lr):
        body = self.net[0]
        body.requires_grad_(True)
        self.optimizer.add_param_group({"params": body.parameters(), "lr": lr, "initial_lr": lr})
        if hasattr(self.scheduler, "base_lrs"):
            self.scheduler.base_lrs.append(lr)

    def epoch(self, x, y):
        for rows in torch.randperm(len(x)).split(20):
            loss = F.cross_entropy(self.net(x[rows]), y[rows])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        self.scheduler.step()
        return loss.item()


torch.manual_seed(26)
x = torch.randn(80, 6)
y = (x[:, 0] * x[:, 1] > 0).long()
tuner = Tuner(nn.Sequential(nn.Linear(6, 30), nn.ReLU()), nn.Linear(30, 2))
for epoch in range(6):
    if epoch == 3:
        tuner.unfreeze(lr=0.02)
    print(epoch, tuner.epoch(x, y), [g["lr"] for g in tuner.optimizer.param_groups])
