import torch
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class Swish(Function):
    @staticmethod
    def forward(ctx, x, beta):
        s = torch.sigmoid(beta * x)
        ctx.save_for_backward(x, s)
        ctx.beta = beta
        return x * s

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, s = ctx.saved_tensors
        return grad * (s + ctx.beta * x * s * (1 - s)), None


class SparseMix(Function):
    @staticmethod
    def forward(ctx, w, x):
        ctx.save_for_backward(w, x)
        return x @ w.t()

    @staticmethod
    def backward(ctx, grad):
        w, x = ctx.saved_tensors
        gw = grad.t() @ x if ctx.needs_input_grad[0] else None
        gx = grad @ w if ctx.needs_input_grad[1] else None
        return gw, gx


class RoundThrough(Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        return grad


class Layer(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.w = nn.Parameter(torch.randn(o, i) / i**0.5)

    def forward(self, x):
        return Swish.apply(SparseMix.apply(self.w, x), 1.5)


torch.manual_seed(2)
first, second = Layer(6, 16), Layer(16, 6)
optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=1e-2)
for _ in range(8):
    x = torch.rand(32, 6) * 4
    code = RoundThrough.apply(first(x))
    loss = nn.functional.smooth_l1_loss(second(code), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
