"""BP733 scaler-update-missing."""

PROGRAMS = {
    "the update stands in the branch of the step": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for step in range(4):
    x = torch.randn(8, 4) * (100.0 if step == 1 else 0.1)
    opt.zero_grad()
    scaler.scale(net(x).pow(2).mean()).backward()
    scaler.unscale_(opt)
    norm = nn.utils.clip_grad_norm_(net.parameters(), 5.0)
    if norm < 100:
        scaler.step(opt)
        scaler.update()  # <- BP733
""",
    "right: the update behind the branch": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for step in range(4):
    x = torch.randn(8, 4) * (100.0 if step == 1 else 0.1)
    opt.zero_grad()
    scaler.scale(net(x).pow(2).mean()).backward()
    scaler.unscale_(opt)
    norm = nn.utils.clip_grad_norm_(net.parameters(), 5.0)
    if norm < 100:
        scaler.step(opt)
    scaler.update()
""",
}
