"""BP509 saturated-activation."""

RAW = """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
pixels = torch.randint(0, 256, (16, 64)).float()
for _ in range({turns}):
    x = {x}
    out = net(x){mark}
    loss = {loss}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

PROGRAMS = {
    "raw pixels": RAW.format(turns=4, x="pixels", mark="  # <- BP509", loss="out.pow(2).mean()"),
    "scaled pixels": RAW.format(turns=4, x="pixels / 255 - 0.5", mark="", loss="out.pow(2).mean()"),
    "twice is no pattern": RAW.format(turns=2, x="pixels", mark="", loss="out.pow(2).mean()"),
    "most elements get no gradient": RAW.format(turns=4, x="pixels / 255", mark="", loss="out[:1].pow(2).mean()"),
}
