"""BP245 custom-backward-formula."""

_HEAD = """
import torch
from torch import nn
torch.manual_seed(0)
"""
_TRAIN = """
opt = torch.optim.SGD(net.parameters(), 0.05)
for x in torch.randn(4, 8, 6):
    loss = (net(x) - x[:, :3]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""

PROGRAMS = {
    "two gradients exchanged in a gate": _HEAD
    + """
class Mul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b
    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * a, g * b  # <- BP245
class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.v, self.g = nn.Linear(6, 3), nn.Linear(6, 3)
    def forward(self, x):
        return Mul.apply(self.v(x), torch.sigmoid(self.g(x)))
net = Gated()
"""
    + _TRAIN,
    "the factor of equalised weights is left out": _HEAD
    + """
class MulConstant(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, constant):
        ctx.constant = constant
        return tensor * constant
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, None  # <- BP245
class Equal(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.weight, self.scale = nn.Parameter(torch.randn(o, i)), (2 / i) ** 0.5
    def forward(self, x):
        return nn.functional.linear(x, MulConstant.apply(self.weight, self.scale))
net = nn.Sequential(Equal(6, 12), nn.LeakyReLU(0.2), Equal(12, 3))
"""
    + _TRAIN,
    "the second half of a product rule": _HEAD
    + """
class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        s = torch.sigmoid(x)
        ctx.save_for_backward(x, s)
        return x * s
    @staticmethod
    def backward(ctx, grad):
        x, s = ctx.saved_tensors
        grad_x = None
        if ctx.needs_input_grad[0]:
            grad_x = grad * s * (1 - s)  # <- BP245
        return grad_x
class Act(nn.Module):
    def forward(self, x):
        return Swish.apply(x)
net = nn.Sequential(nn.Linear(6, 12), Act(), nn.Linear(12, 3))
"""
    + _TRAIN,
    "a linear layer whose bias is scaled": _HEAD
    + """
class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w)
        return x.mm(w.t()) - b.unsqueeze(0)
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g.mm(w), g.t().mm(x), g.sum(0)  # <- BP245
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.b = nn.Parameter(torch.randn(3, 6)), nn.Parameter(torch.zeros(3))
    def forward(self, x):
        return Linear.apply(x, self.w, self.b)
net = Layer()
"""
    + _TRAIN,
    "right: a linear layer by hand": _HEAD
    + """
class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w)
        return x @ w.t() + b
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        gx = gw = gb = None
        if ctx.needs_input_grad[0]:
            gx = g @ w
        if ctx.needs_input_grad[1]:
            gw = g.t() @ x
        if ctx.needs_input_grad[2]:
            gb = g.sum(dim=0)
        return gx, gw, gb
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.b = nn.Parameter(torch.randn(3, 6)), nn.Parameter(torch.zeros(3))
    def forward(self, x):
        return Linear.apply(x, self.w, self.b)
net = Layer()
"""
    + _TRAIN,
    "right: tanh in the forward pass, straight through on the way back": _HEAD
    + """
class Soft(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.tanh(3 * x)
    @staticmethod
    def backward(ctx, g):
        return g
class Act(nn.Module):
    def forward(self, x):
        return Soft.apply(x)
net = nn.Sequential(nn.Linear(6, 12), Act(), nn.Linear(12, 3))
"""
    + _TRAIN,
    "right: a root with an epsilon in its gradient": _HEAD
    + """
class Root(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.sqrt(x)
        ctx.save_for_backward(y)
        return y
    @staticmethod
    def backward(ctx, g):
        y, = ctx.saved_tensors
        return g / (2 * y + 1e-3)
class Act(nn.Module):
    def forward(self, x):
        return Root.apply(x.pow(2) + 0.1)
net = nn.Sequential(nn.Linear(6, 12), Act(), nn.Linear(12, 3))
"""
    + _TRAIN,
    "right: a factor for the gradient alone": _HEAD
    + """
class Slow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * 1.0
    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor, None
class Act(nn.Module):
    def forward(self, x):
        return Slow.apply(x, 0.1)
net = nn.Sequential(nn.Linear(6, 12), Act(), nn.Linear(12, 3))
"""
    + _TRAIN,
    "right: pruned weights, the gradient straight through the mask": _HEAD
    + """
class Masked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w, mask):
        ctx.mask = mask
        return w * mask
    @staticmethod
    def backward(ctx, g):
        return g, None
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.mask = nn.Parameter(torch.randn(3, 6)), (torch.rand(3, 6) > 0.5).float()
    def forward(self, x):
        return nn.functional.linear(x, Masked.apply(self.w, self.mask))
net = Layer()
"""
    + _TRAIN,
}
