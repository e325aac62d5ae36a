"""BP243 custom-function-incomplete."""

PROGRAMS = {
    "methods of the old style": """
import torch

class Double(torch.autograd.Function):  # <- BP243
    def forward(self, values):
        return values * 2

    def backward(self, grad):
        return grad * 2

weight = torch.ones(3, requires_grad=True)
double = Double()
double(weight).sum().backward()
""",
    "an object of a class with static methods": """
import torch

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values):
        return values * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2

weight = torch.ones(3, requires_grad=True)
Double()(weight).sum().backward()  # <- BP243
""",
    "only backward is static": """
import torch

class Double(torch.autograd.Function):  # <- BP243
    def forward(ctx, values):
        return values * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2

weight = torch.ones(3, requires_grad=True)
Double()(weight).sum().backward()
""",
    "a second derivative of what is differentiable once": """
import torch
from torch.autograd.function import once_differentiable

class Square(torch.autograd.Function):  # <- BP243
    @staticmethod
    def forward(ctx, values):
        ctx.save_for_backward(values)
        return values * values

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (values,) = ctx.saved_tensors
        return grad * 2 * values

weight = torch.ones(3, requires_grad=True)
scale = torch.tensor(2.0, requires_grad=True)
(slope,) = torch.autograd.grad((scale * Square.apply(weight)).sum(), weight, create_graph=True)
slope.sum().backward()
""",
    "a complete Function beside it": """
import torch

class Fine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values):
        return values * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2

class Sign(torch.autograd.Function):  # <- BP243
    @staticmethod
    def forward(ctx, values):
        return values.sign()

weight = torch.ones(3, requires_grad=True)
scaled = Sign.apply(weight * 2)
scaled.sum().backward()
""",
}
