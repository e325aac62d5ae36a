import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class ArcMargin(nn.Module):
    def __init__(self, d, n, s=16.0, m=0.2):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n, d))
        nn.init.xavier_uniform_(self.weight)
        self.s, self.cos_m, self.sin_m = s, math.cos(m), math.sin(m)
        self.th, self.mm = math.cos(math.pi - m), math.sin(math.pi - m) * m

    def forward(self, x, label):
        cosine = F.linear(F.normalize(x), F.normalize(self.weight))
        sine = torch.sqrt((1.0 - cosine.pow(2)).clamp(1e-6, 1))
        phi = cosine * self.cos_m - sine * self.sin_m
        phi = torch.where(cosine > self.th, phi, cosine - self.mm)
        one_hot = torch.zeros_like(cosine)
        one_hot.scatter_(1, label.view(-1, 1).long(), 1)
        return self.s * (one_hot * phi + (1.0 - one_hot) * cosine)


backbone, metric = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 8)), ArcMargin(8, 5)
opt = torch.optim.SGD([{"params": backbone.parameters()}, {"params": metric.parameters()}], lr=0.05, momentum=0.9, weight_decay=5e-4)
sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)
X = torch.randn(80, 10)
Y = X[:, :5].argmax(1)
for epoch in range(4):
    for i in torch.randperm(80).split(20):
        out = metric(backbone(X[i]), Y[i])
        loss = F.cross_entropy(out, Y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    sched.step()
    print(epoch, loss.item(), (out.argmax(1) == Y[i]).float().mean().item())
