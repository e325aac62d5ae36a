"""Terms of a sum that are numbers or places (BP603, BP606), and averages that begin with a loss (BP304)."""

PROGRAMS = {
    "rounded aux through topk in sum": """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
gate, out = nn.Linear(4, 3), nn.Linear(4, 2)
opt = torch.optim.Adam([*gate.parameters(), *out.parameters()], 1e-2)
for step in range(4):
    x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))
    p = gate(x).softmax(-1)
    top, idx = p.max(-1)
    load = F.one_hot(idx, 3).float().mean(0)  # <- BP606
    balance = load.pow(2).sum()
    loss = F.cross_entropy(out(x * top[:, None]), y) + 0.1 * balance
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "number attribute term": """
import torch
from torch import nn
torch.manual_seed(0)
class Step:
    def __init__(self):
        self.enc, self.dec = nn.Linear(6, 3), nn.Linear(3, 6)
        self.opt = torch.optim.Adam([*self.enc.parameters(), *self.dec.parameters()], 1e-2)
    def run(self, x):
        z = self.enc(x)
        rec = (self.dec(z) - x).abs().mean()
        self.sparsity = z.abs().mean()
        self.sparsity = self.sparsity.item()  # <- BP603
        total = rec + 0.1 * self.sparsity
        self.opt.zero_grad()
        total.backward()
        self.opt.step()
s = Step()
for _ in range(4):
    s.run(torch.randn(8, 6))
""",
    "good number logged": """
import torch
from torch import nn
torch.manual_seed(0)
enc, dec = nn.Linear(6, 3), nn.Linear(3, 6)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], 1e-2)
shown = 0.0
for _ in range(4):
    x = torch.randn(8, 6)
    z = enc(x)
    rec = (dec(z) - x).abs().mean()
    sparsity = z.abs().mean()
    total = rec + 0.1 * sparsity
    opt.zero_grad(); total.backward(); opt.step()
    sparsity = sparsity.item()
    shown = shown + sparsity
""",
    "ema of loss in helper": """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), 0.01)
class Meter:
    value = None
    def update(self, x):
        self.value = x if self.value is None else 0.9 * self.value + 0.1 * x
meter = Meter()
for step in range(8):
    loss = net(torch.randn(8, 4)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    meter.update(loss)  # <- BP304
""",
}
