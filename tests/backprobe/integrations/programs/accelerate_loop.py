"""A loop that Accelerate has prepared."""

import torch
from accelerate import Accelerator
from loops import Net, data, whole

from backprobe.integrations.accelerate import watch

accelerator = Accelerator(cpu=True)
net = Net()
model, optimizer = accelerator.prepare(net, torch.optim.SGD(net.parameters(), lr=0.01))
with watch(accelerator, model, optimizer, report=False) as watching:
    for x, y in data():
        optimizer.zero_grad()
        accelerator.backward(model(x, y)["loss"])
        optimizer.step()
whole(watching, {"model.body.weight", "model.body.bias"})
print("watched")
