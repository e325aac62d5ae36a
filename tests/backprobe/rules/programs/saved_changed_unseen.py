"""BP411 saved-changed-unseen."""

SHAPES = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
"""

PROGRAMS = {
    "gradcheck by hand writes through data and restores": SHAPES
    + """
w = torch.randn(3, 2, dtype=torch.double, requires_grad=True)
x = torch.randn(5, 3, dtype=torch.double)

def f():
    return (x @ w).tanh().pow(2).sum()

loss = f()
num = torch.zeros_like(w)
for i in range(3):
    for j in range(2):
        old = w.data[i, j].item()
        w.data[i, j] = old + 1e-6
        up = f().item()
        w.data[i, j] = old - 1e-6
        down = f().item()
        w.data[i, j] = old
        num[i, j] = (up - down) / 2e-6
loss.backward()
print((w.grad - num).abs().max())
""",
    "weights swapped for their average and back between forward and backward": SHAPES
    + """
import copy
net = nn.Linear(4, 2)
average = copy.deepcopy(net)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    x = torch.randn(8, 4)
    h = torch.tanh(net(x))
    loss = h.pow(2).mean()
    kept = [p.detach().clone() for p in net.parameters()]
    for p, a in zip(net.parameters(), average.parameters()):
        p.data.copy_(a)
    with torch.no_grad():
        print(net(x).mean().item())
    for p, k in zip(net.parameters(), kept):
        p.data.copy_(k)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a straight-through rounding Function with a clip mask": SHAPES
    + """
class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        out = torch.empty_like(x)
        out[x >= 0] = 1
        out[x < 0] = -1
        return out

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        g = g.clone()
        g[x.abs() > 1] = 0
        return g

class BinaryLinear(nn.Linear):
    def forward(self, x):
        return F.linear(x, Round.apply(self.weight), self.bias)

net = nn.Sequential(BinaryLinear(6, 8), nn.BatchNorm1d(8), nn.Hardtanh(), BinaryLinear(8, 2))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(4):
    loss = F.cross_entropy(net(torch.randn(16, 6)), torch.randint(0, 2, (16,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
    for m in net:
        if isinstance(m, BinaryLinear):
            m.weight.data.clamp_(-1, 1)
""",
    "BinaryConnect, sign for the passes and back before the step": SHAPES
    + """
net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for _ in range(4):
    kept = [p.data.clone() for p in net.parameters()]
    for p in net.parameters():
        p.data.copy_(p.data.sign() * p.data.abs().mean())
    loss = F.cross_entropy(net(torch.randn(16, 6)), torch.randint(0, 2, (16,)))
    opt.zero_grad()
    loss.backward()
    for p, k in zip(net.parameters(), kept):
        p.data.copy_(k)
    opt.step()
""",
    "straight-through by a Function that writes its output through data": SHAPES
    + """
class Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        out = x.clone()
        out.data.sign_()
        return out

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x.abs() <= 1)

net, head = nn.Linear(5, 8), nn.Linear(8, 1)
opt = torch.optim.Adam([*net.parameters(), *head.parameters()])
for _ in range(4):
    code = Sign.apply(net(torch.randn(16, 5)))
    loss = (head(code) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "straight-through levels written into data of the detached value": SHAPES
    + """
class Quantise(nn.Module):
    def forward(self, x):
        q = x.detach().clone()
        q.data = (q * 4).round() / 4
        return x + (q - x).detach()

net = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), Quantise(), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters())
for _ in range(4):
    loss = (net(torch.randn(16, 5)) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a function clamps weights before the backward call": SHAPES
    + """
net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.5)

def limit(net, bound):
    for p in net.parameters():
        p.data.clamp_(-bound, bound)

for _ in range(4):
    loss = net(torch.randn(16, 6)).pow(2).mean()
    opt.zero_grad()
    limit(net, 0.1)  # <- BP411
    loss.backward()
    opt.step()
""",
    "a method of the trainer clamps weights before the backward call": SHAPES
    + """
class Trainer:
    def __init__(self, net):
        self.net, self.opt = net, torch.optim.SGD(net.parameters(), lr=0.5)

    def limit(self):
        for layer in self.net:
            if isinstance(layer, nn.Linear):
                layer.weight.data.clamp_(-0.1, 0.1)

    def step(self, x):
        loss = self.net(x).pow(2).mean()
        self.opt.zero_grad()
        self.limit()  # <- BP411
        loss.backward()
        self.opt.step()

trainer = Trainer(nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1)))
for _ in range(4):
    trainer.step(torch.randn(16, 6))
""",
    "a function clamps weights behind the step": SHAPES
    + """
net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.5)

def limit(net, bound):
    for p in net.parameters():
        p.data.clamp_(-bound, bound)

for _ in range(4):
    loss = net(torch.randn(16, 6)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    limit(net, 0.1)
""",
}
