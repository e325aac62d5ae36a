"""BP508 exploding-gradient."""

UNROLLED = """
import torch
from torch import nn
torch.manual_seed(0)
w = nn.Parameter(torch.randn(16, 16) * {scale}){mark}
layer, out = nn.Linear(3, 16), nn.Linear(16, 1)
optimizer = torch.optim.SGD([w, *layer.parameters(), *out.parameters()], lr=1e-12)
for x in torch.randn({calls}, 4, 12, 3):
    h = torch.zeros(4, 16)
    for t in range(12):
        h = h @ w + layer(x[:, t])
    loss = out(h).mean()
    optimizer.zero_grad()
    loss.backward()
    {clip}
    optimizer.step()
"""

STACK = """
import torch
from torch import nn
torch.manual_seed(0)

def start(module):
    if isinstance(module, nn.Linear):
        {draw}
        nn.init.zeros_(module.bias)

layers = []
for _ in range({depth}):
    layers += [nn.Linear(32, 32), {between}]
net = nn.Sequential(*layers, nn.Linear(32, 1))
net.apply(start)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-4)
for x in torch.randn(4, 16, 32):
    optimizer.zero_grad()
    net(x).square().mean().backward()
    {clip}
    optimizer.step()
"""


def _stack(draw: str, *, depth: int = 5, between: str = "nn.ReLU()", clip: str = "pass") -> str:
    return STACK.format(draw=draw, depth=depth, between=between, clip=clip)


PROGRAMS = {
    "weights of a stack with a deviation of one": _stack("nn.init.normal_(module.weight)  # <- BP508"),
    "weights of a stack drawn from a wide range": _stack(
        "module.weight.data.uniform_(-1, 1)  # <- BP508", between="nn.LeakyReLU()", depth=8
    ),
    "weights of a stack by the number of inputs": _stack("nn.init.kaiming_normal_(module.weight)"),
    "weights of a stack with a deviation of one, and norms between": _stack(
        "nn.init.normal_(module.weight)", between="nn.LayerNorm(32), nn.ReLU()"
    ),
    "weights of a stack with a deviation of one, and a clip": _stack(
        "nn.init.normal_(module.weight)", clip="nn.utils.clip_grad_norm_(net.parameters(), 1.0)"
    ),
    "weights of two layers with a deviation of one": _stack("nn.init.normal_(module.weight)", depth=2),
    "weights of a stack with a deviation of a tenth": _stack("nn.init.normal_(module.weight, std=0.1)"),
    "a product beside the input's own": UNROLLED.format(scale=1, calls=4, mark="  # <- BP508", clip="pass"),
    "a weight that keeps the norm": UNROLLED.format(scale=0.25, calls=4, mark="", clip="pass"),
    "twice is no pattern": UNROLLED.format(scale=1, calls=2, mark="", clip="pass"),
    "the method of a cell, and values that overflow after one step": """
import torch
from torch import nn

class Cell(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.u = nn.Parameter(torch.randn(hidden, inputs) * 0.1)
        self.w = nn.Parameter(torch.empty(hidden, hidden))
        self.start()

    def start(self):
        nn.init.normal_(self.w)  # <- BP508

    def forward(self, x, h):
        return torch.relu(x @ self.u.T + h @ self.w.T)

torch.manual_seed(0)
cell, out = Cell(3, 24), nn.Linear(24, 1)
optimizer = torch.optim.SGD([*cell.parameters(), *out.parameters()], lr=1e-3)
for x in torch.randn(3, 20, 8, 3):
    h = x.new_zeros(8, 24)
    for part in x:
        h = cell(part, h)
    optimizer.zero_grad()
    (out(h) - 1).pow(2).mean().backward()
    optimizer.step()
""",
    "layers of a stack in one method, each with a weight that its constructor draws": """
import torch
from torch import nn

class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.w = nn.Parameter(torch.randn(width, width))  # <- BP508

    def forward(self, x):
        return x @ self.w

torch.manual_seed(0)
net = nn.Sequential(*[Layer(16) for _ in range(6)], nn.Linear(16, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-12)
for x in torch.randn(4, 8, 16):
    optimizer.zero_grad()
    net(x).mean().backward()
    optimizer.step()
""",
    "clipped": UNROLLED.format(scale=1, calls=4, mark="", clip="nn.utils.clip_grad_norm_([w], 1.0)"),
    "right: spikes, whose last turn hardly counts": """
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Spike(torch.autograd.Function):
    scale = 10.0

    @staticmethod
    def forward(ctx, v):
        ctx.save_for_backward(v)
        return (v > 0).float()

    @staticmethod
    def backward(ctx, g):
        (v,) = ctx.saved_tensors
        return g / (Spike.scale * v.abs() + 1.0) ** 2


class SNN(nn.Module):
    def __init__(self, i=20, h=30, o=2, alpha=0.9, beta=0.8):
        super().__init__()
        self.w1 = nn.Parameter(torch.randn(i, h) * 1.5 / i**0.5)
        self.w2 = nn.Parameter(torch.randn(h, o) * 1.5 / h**0.5)
        self.alpha, self.beta = alpha, beta

    def forward(self, x):
        B = x.size(0)
        syn = mem = torch.zeros(B, self.w1.size(1))
        flt = out = torch.zeros(B, self.w2.size(1))
        rec, spikes = [], []
        for t in range(x.size(1)):
            s = Spike.apply(mem - 1.0)
            reset = s.detach()
            syn = self.alpha * syn + x[:, t] @ self.w1
            mem = (self.beta * mem + syn) * (1.0 - reset)
            flt = self.alpha * flt + s @ self.w2
            out = self.beta * out + flt
            rec.append(out)
            spikes.append(s)
        return torch.stack(rec, 1), torch.stack(spikes, 1)


net = SNN()
opt = torch.optim.Adamax(net.parameters(), lr=5e-3)
x = (torch.rand(16, 15, 20) < 0.15).float()
y = torch.randint(0, 2, (16,))
for e in range(5):
    out, spk = net(x)
    loss = F.nll_loss(F.log_softmax(out.max(1).values, 1), y) + 1e-5 * spk.sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(e, loss.item(), spk.mean().item())
""",
    "layers that multiply with the counts of neighbours": """
import torch
from torch import nn

torch.manual_seed(0)
class Convolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8) / 8**0.5)

    def forward(self, h, links):
        return (links @ (h @ self.weight)).relu()

links = (torch.rand(30, 30) < 0.4).float()  # <- BP508
layers, out = nn.ModuleList(Convolution() for _ in range(6)), nn.Linear(8, 1)
optimizer = torch.optim.Adam([*layers.parameters(), *out.parameters()], lr=1e-4)
for x in torch.randn(5, 30, 8):
    for layer in layers:
        x = layer(x, links)
    optimizer.zero_grad()
    out(x).mean().backward()
    optimizer.step()
""",
    "layers that take the mean of neighbours": """
import torch
from torch import nn

torch.manual_seed(0)
class Convolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8) / 8**0.5)

    def forward(self, h, links):
        return (links @ (h @ self.weight)).relu()

links = (torch.rand(30, 30) < 0.4).float()
links = links / links.sum(1, keepdim=True)
layers, out = nn.ModuleList(Convolution() for _ in range(6)), nn.Linear(8, 1)
optimizer = torch.optim.Adam([*layers.parameters(), *out.parameters()], lr=1e-4)
for x in torch.randn(5, 30, 8):
    for layer in layers:
        x = layer(x, links)
    optimizer.zero_grad()
    out(x).mean().backward()
    optimizer.step()
""",
}
