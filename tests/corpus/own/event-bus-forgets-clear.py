# /// case
# category = "gradient"
# kind = "missing-zero-grad"
# severity = "warning"
# names = ["optimizer", "loss"]
# ///
#-
from collections import defaultdict

import torch
from torch import nn


class Bus:
    def __init__(self):
        self.handlers = defaultdict(list)

    def on(self, event):
        def register(handler):
            self.handlers[event].append(handler)
            return handler

        return register

    def emit(self, event, **payload):
        for handler in self.handlers[event]:
            handler(**payload)


bus = Bus()
torch.manual_seed(3)
net = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 1))
optimizer = torch.optim.Adagrad(net.parameters(), lr=0.05)


@bus.on("batch")
def fit(rows, target):
    loss = nn.functional.huber_loss(net(rows), target)
    loss.backward()  #! here
    bus.emit("gradients", loss=loss)


@bus.on("gradients")
def advance(loss):
    optimizer.step()  #! also


@bus.on("batch_begin")
def clear(**_):
    optimizer.zero_grad()


for _ in range(6):
    rows = torch.randn(10, 6)
#+     bus.emit("batch_begin")
    bus.emit("batch", rows=rows, target=rows.sum(1, keepdim=True))
