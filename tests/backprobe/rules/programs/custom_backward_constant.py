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
