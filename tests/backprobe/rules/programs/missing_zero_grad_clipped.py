"""BP210 missing-zero-grad: what torch clips or unscales between the steps, and what the program scales by hand."""

LOOP = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(5):
    net(torch.randn(8, 3)).pow(2).mean().backward(){mark}
    {change}
    opt.step()
    {after}
"""
SCALED = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for _ in range(5):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = net(torch.randn(8, 3)).float().pow(2).mean()
    scaler.scale(loss).backward(){mark}
    {change}
    scaler.step(opt)
    scaler.update()
    {after}
"""
WINDOW = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(9):
    loss = net(torch.randn(8, 3)).pow(2).mean() / 3
    loss.backward()
    if step % 3 == 2:
        {change}
        opt.step()
        opt.zero_grad()
"""
MEAN = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(4):
    {clear}
    for part in torch.randn(12, 3).split(4):
        net(part).pow(2).mean().backward()
    for p in net.parameters():
        {change}
    opt.step(){mark}
"""
HELPER = """
import torch
from torch import nn

class Learner:
    def __init__(self):
        self.net = nn.Linear(3, 1)
        self.opt = torch.optim.Adam(self.net.parameters(), lr=0.01)

    def limited(self):
        return nn.utils.clip_grad_norm_(self.net.parameters(), 0.5)

    def learn(self, x):
        {clear}
        self.net(x).pow(2).mean().backward(){mark}
        norm = self.limited()
        self.opt.step()
        return norm

learner = Learner()
for x in torch.randn(5, 8, 3):
    learner.learn(x)
"""

CLIPS = {
    "by norm, never reached": "nn.utils.clip_grad_norm_(net.parameters(), 1000)",
    "by norm": "nn.utils.clip_grad_norm_(net.parameters(), 0.1)",
    "by norm, all at once": "nn.utils.clip_grad_norm_(net.parameters(), 0.1, foreach=True)",
    "by value": "nn.utils.clip_grad_value_(net.parameters(), 0.01)",
    "by a norm that was taken before": "nn.utils.clip_grads_with_norm_(net.parameters(), 0.1, "
    "nn.utils.get_total_norm([p.grad for p in net.parameters()]))",
}
NORM = CLIPS["by norm"]
HAND = {
    "a limit by hand": "[p.grad.clamp_(-0.1, 0.1) for p in net.parameters()]",
    "a part by hand": "[p.grad.mul_(1 / 2) for p in net.parameters()]",
}
MARK = "  # <- BP210"

PROGRAMS = {
    **{f"clipped {how}": LOOP.format(mark=MARK, change=one, after="") for how, one in CLIPS.items()},
    **{f"changed: {how}": LOOP.format(mark=MARK, change=one, after="") for how, one in HAND.items()},
    "clipped behind a scaler": SCALED.format(mark=MARK, change=f"scaler.unscale_(opt); {NORM}", after=""),
    "unscaled": SCALED.format(mark=MARK, change="scaler.unscale_(opt)", after=""),
    "unscaled by the step": SCALED.format(mark=MARK, change="pass", after=""),
    "clipped in a method": HELPER.format(mark=MARK, clear="pass"),
    "divided by the number of parts": MEAN.format(mark=MARK, clear="pass", change="p.grad.div_(3)"),
    "divided by the number of parts, as an operator": MEAN.format(mark=MARK, clear="pass", change="p.grad /= 3"),
    "right: clipped and cleared": LOOP.format(mark="", change=NORM, after="opt.zero_grad()"),
    "right: unscaled, clipped and cleared": SCALED.format(
        mark="", change=f"scaler.unscale_(opt); {NORM}", after="opt.zero_grad()"
    ),
    "right: clipped in a method and cleared": HELPER.format(mark="", clear="self.opt.zero_grad()"),
    "right: a window that is clipped, and cleared at its end": WINDOW.format(change=NORM),
    "right: divided by the number of parts, and cleared": MEAN.format(
        mark="", clear="opt.zero_grad()", change="p.grad.div_(3)"
    ),
    "right: momentum that is scaled by hand, of clipped gradients": LOOP.format(
        mark="", change=NORM, after="[p.grad.mul_(0.9) for p in net.parameters()]"
    ),
    "right: momentum that is scaled before the step": LOOP.format(
        mark="", change="[p.grad.mul_(0.9) for p in net.parameters()]", after=""
    ),
    "right: momentum that is halved after the step": LOOP.format(
        mark="", change="pass", after="[p.grad.div_(2) for p in net.parameters()]"
    ),
}
