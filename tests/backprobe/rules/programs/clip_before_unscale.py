"""BP721 clip-before-unscale."""

HEAD = """
import torch
from torch import nn
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
"""

PROGRAMS = {
    "unscaled after clipping": HEAD
    + """
for x in torch.randn(4, 8, 3):
    optimizer.zero_grad()
    scaled = scaler.scale(model(x).pow(2).mean())
    scaled.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # <- BP721
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
""",
    "in a class": """
import torch
from torch import nn

class Trainer:
    def __init__(self, net):
        self.net, self.scaler = net, torch.amp.GradScaler("cpu", init_scale=4096.0)
        self.optim = torch.optim.AdamW(net.parameters())

    def step(self, x):
        self.optim.zero_grad(set_to_none=True)
        loss = self.net(x).pow(2).mean() / 2
        self.scaler.scale(loss).backward()
        torch.nn.utils.clip_grad_value_(self.net.parameters(), 0.5)  # <- BP721
        self.scaler.step(self.optim)
        self.scaler.update()

trainer = Trainer(nn.Linear(3, 1))
for x in torch.randn(3, 8, 3):
    trainer.step(x)
""",
    "an unscaled loss is clipped, beside a scaled one": HEAD
    + """
other = nn.Linear(3, 1)
second = torch.optim.SGD(other.parameters(), lr=0.1)
for x in torch.randn(4, 8, 3):
    optimizer.zero_grad()
    second.zero_grad()
    scaler.scale(model(x).pow(2).mean()).backward()
    scaler.step(optimizer)
    scaler.update()
    other(x).pow(2).mean().backward()
    nn.utils.clip_grad_norm_(other.parameters(), 1.0)
    second.step()
""",
    "no step follows": HEAD
    + """
scaler.scale(model(torch.randn(8, 3)).pow(2).mean()).backward()
print(nn.utils.clip_grad_norm_(model.parameters(), 1.0))
""",
    "the whole step is inside a function that was given all three": """
import torch
from torch import nn

def update(scaler, optim, loss, parameters):
    scaler.scale(loss).backward()
    nn.utils.clip_grad_norm_(parameters, 1.0)  # <- BP721
    scaler.step(optim)
    scaler.update()

model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
amp = torch.amp.GradScaler("cpu", init_scale=1024.0)
for x in torch.randn(4, 8, 3):
    opt.zero_grad()
    update(amp, opt, model(x).pow(2).mean(), list(model.parameters()))
""",
}
