"""BP244 custom-backward-constant."""

PROGRAMS = {
    "function ignores gradient": """
import torch
from torch import nn
torch.manual_seed(0)
class Hinge(torch.autograd.Function):
    @staticmethod
    def forward(ctx, margin):
        ctx.save_for_backward(margin)
        return (1 - margin).clamp(min=0)
    @staticmethod
    def backward(ctx, g):
        margin, = ctx.saved_tensors
        return -(margin < 1).float()  # <- BP244
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), 0.1)
for x in torch.randn(4, 8, 4):
    y = x[:, :1].sign()
    loss = Hinge.apply(net(x) * y).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "gradient reversal as module": """
import torch
from torch import nn
torch.manual_seed(0)
class Reverse(nn.Module):
    def __init__(self, a): super().__init__(); self.a = a
    def forward(self, x): return x * 1.0
    def backward(self, grad):  # <- BP244
        return -self.a * grad
enc, cls, dom = nn.Linear(4, 8), nn.Linear(8, 2), nn.Sequential(Reverse(0.1), nn.Linear(8, 2))
opt = torch.optim.SGD([*enc.parameters(), *cls.parameters(), *dom.parameters()], 0.1)
for x in torch.randn(4, 8, 4):
    h = enc(x).relu()
    y = torch.randint(0, 2, (8,))
    loss = nn.functional.cross_entropy(cls(h), y) + nn.functional.cross_entropy(dom(h), y)
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "good straight through": """
import torch
from torch import nn
torch.manual_seed(0)
class Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x.sign()
    @staticmethod
    def backward(ctx, g): return g
net, out = nn.Linear(4, 4), nn.Linear(4, 1)
opt = torch.optim.SGD([*net.parameters(), *out.parameters()], 0.1)
for x in torch.randn(4, 8, 4):
    loss = (out(Sign.apply(net(x))) - 1).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "good module of the same name as a Function": """
import torch
from torch import nn
torch.manual_seed(0)
class operations:
    class Reverse(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x): return x.view_as(x)
        @staticmethod
        def backward(ctx, g): return -g
class Reverse(nn.Module):
    def forward(self, x): return operations.Reverse.apply(x)
net = nn.Sequential(nn.Linear(4, 4), Reverse(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), 0.1)
for x in torch.randn(4, 8, 4):
    loss = (net(x) - 1).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "good backward of a module is a step of training": """
import torch
from torch import nn
torch.manual_seed(0)
class Task(nn.Module):
    def __init__(self): super().__init__(); self.layer = nn.Linear(4, 1)
    def forward(self, x): return self.layer(x)
    def backward(self, loss): loss.backward()
def fit(task, walk):
    opt = torch.optim.SGD(task.parameters(), 0.1)
    for x in torch.randn(4, 8, 4):
        opt.zero_grad(); walk((task(x) - 1).pow(2).mean()); opt.step()
task = Task()
fit(task, task.backward)
""",
    "good layers run back by hand with keywords": """
import torch
from torch import nn
torch.manual_seed(0)
class Scale(nn.Module):
    def forward(self, x): return x * 2.0
    def backward(self, grad): return grad * 2.0
x = torch.randn(3, requires_grad=True)
layer = Scale()
layer(x).sum().backward(retain_graph=True)
torch.testing.assert_close(layer.backward(grad=torch.ones(3)), x.grad)
""",
    "good derivative is zero": """
import torch
from torch import nn
torch.manual_seed(0)
class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.round()
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return torch.zeros_like(x)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), 0.1)
for x in torch.randn(4, 8, 4):
    out = net(x)
    loss = ((out + Round.apply(out)) - 1).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
}
PROGRAMS |= {
    "one input of two: the slope of a learned kink": """
import torch
from torch import nn
class Kink(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, slope):
        ctx.save_for_backward(x, slope)
        return torch.where(x > 0, x, slope * x)
    @staticmethod
    def backward(ctx, grad):
        x, slope = ctx.saved_tensors
        grad_x = torch.where(x > 0, grad, slope * grad)
        grad_slope = None
        if ctx.needs_input_grad[1]:
            below = x.clamp(max=0)
            grad_slope = below.sum()  # <- BP244
        return grad_x, grad_slope
net, slope = nn.Linear(4, 3), nn.Parameter(torch.tensor(0.2))
opt = torch.optim.SGD([*net.parameters(), slope], 0.01)
for x in torch.randn(4, 8, 4):
    loss = (Kink.apply(net(x), slope) - 1).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "one input of three, written into the return": """
import torch
from torch import nn
class Affine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale, shift):
        ctx.save_for_backward(x, scale)
        out = x * scale
        out += shift
        return out
    @staticmethod
    def backward(ctx, g):
        x, scale = ctx.saved_tensors
        return g * scale, x.sum(0), g.sum(0)  # <- BP244
scale, shift = nn.Parameter(torch.ones(4)), nn.Parameter(torch.zeros(4))
net = nn.Linear(4, 4)
opt = torch.optim.SGD([*net.parameters(), scale, shift], 0.01)
for x in torch.randn(4, 8, 4):
    loss = (Affine.apply(net(x), scale, shift) - 1).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "good: a loss that is handed on beside the output gets a gradient of one": """
import torch
from torch import nn
class WithBalance(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, balance):
        assert balance.numel() == 1
        ctx.dtype = balance.dtype
        return x
    @staticmethod
    def backward(ctx, grad):
        return grad, torch.ones(1, dtype=ctx.dtype).squeeze() * 0.01
net, gate = nn.Linear(4, 3), nn.Linear(4, 3)
opt = torch.optim.SGD([*net.parameters(), *gate.parameters()], 0.01)
for x in torch.randn(4, 8, 4):
    shares = gate(x).softmax(1)
    out = WithBalance.apply(net(x) * shares, shares.mean(0).square().sum())
    loss = (out - 1).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "good: the gradients are collected in a list": """
import torch
from torch import nn
class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * scale
    @staticmethod
    def backward(ctx, grad):
        x, scale = ctx.saved_tensors
        sums = torch.zeros_like(scale)
        for row, weight in zip(x, grad):
            sums.addcmul_(row, weight)
        return grad * scale, sums
net, scale = nn.Linear(4, 3), nn.Parameter(torch.ones(3))
opt = torch.optim.SGD([*net.parameters(), scale], 0.01)
for x in torch.randn(4, 8, 4):
    loss = (Scaled.apply(net(x), scale) - 1).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "good: a mask has no gradient to speak of": """
import torch
from torch import nn
class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, level):
        ctx.save_for_backward(x, level)
        return x * (x > level)
    @staticmethod
    def backward(ctx, grad):
        x, level = ctx.saved_tensors
        none = torch.zeros_like(level)
        return grad * (x > level), none
net, level = nn.Linear(4, 3), nn.Parameter(torch.zeros(3))
opt = torch.optim.SGD([*net.parameters(), level], 0.01)
for x in torch.randn(4, 8, 4):
    loss = (Gate.apply(net(x), level) - 1).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
}
