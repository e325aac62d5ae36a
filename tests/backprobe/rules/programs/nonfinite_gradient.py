"""BP502 nonfinite-gradient."""

PROGRAMS = {
    "anomaly mode raises": """
import torch
w = torch.zeros(3, requires_grad=True)
with torch.autograd.set_detect_anomaly(True):
    roots = w.sqrt()  # <- BP502
    (roots * 0).sum().backward()
""",
    "a distance of equal points, in a module": """
import torch
from torch import nn

class Contrastive(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 2)

    def forward(self, a, b):
        gap = self.net(a) - self.net(b)
        distance = gap.norm(dim=1) + gap.pow(2).sum(1).sqrt()  # <- BP502
        return distance.mean()

model = Contrastive()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(3, 4)
for _ in range(2):
    loss = model(x, x)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a scaler leaves the steps out": """
import torch
from torch import nn

net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**126)
for _ in range(3):
    loss = net(torch.randn(8, 4) * 1e3).pow(2).mean()
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
""",
}
