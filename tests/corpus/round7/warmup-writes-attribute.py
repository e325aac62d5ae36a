# /// case
# title = "The warm-up sets optimizer.lr, which no optimizer reads"
# category = "optimizer"
# kind = "learning-rate-write-ineffective"
# kinds_also_ok = ["optimizer-attribute-ignored", "schedule-without-effect"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["warmup", "lr", "param_groups"]
# symptom = "the learning rate stays what it was"
# symptom_check = 'optimizer.param_groups[0]["lr"] == 0.2'
# cause = "the rate lives in param_groups"
# fix = "write to each group"
# ///
import math

import torch
import torch.nn as nn


def warmup_cosine(step, total, peak, warmup):
    if step < warmup:
        return peak * (step + 1) / warmup
    done = (step - warmup) / (total - warmup)
    return 0.5 * peak * (1 + math.cos(math.pi * done))


class Highway(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.plain, self.gate = nn.Linear(dim, dim), nn.Linear(dim, dim)
        nn.init.constant_(self.gate.bias, -1.0)

    def forward(self, x):
        t = torch.sigmoid(self.gate(x))
        return t * torch.relu(self.plain(x)) + (1 - t) * x


torch.manual_seed(70)
net = nn.Sequential(Highway(6), Highway(6), nn.Linear(6, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9)
total, warmup = 24, 6
for step in range(total):
    optimizer.lr = warmup_cosine(step, total, peak=0.1, warmup=warmup)  #- here
#+     for group in optimizer.param_groups:
#+         group["lr"] = warmup_cosine(step, total, peak=0.1, warmup=warmup)
    x = torch.randn(32, 6)
    y = (x[:, 0] > x[:, 1]).long()
    loss = nn.functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  #! also
    if step % 6 == 5:
        print(step, loss.item())
