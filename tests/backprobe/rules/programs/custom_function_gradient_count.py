"""BP240 custom-function-gradient-count."""

PROGRAMS = {
    "the last input is a tensor: no edit is offered": """
import torch

class Times(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, weight):
        ctx.save_for_backward(rows, weight)
        return rows * weight

    @staticmethod
    def backward(ctx, grad):
        rows, weight = ctx.saved_tensors
        return grad * weight  # <- BP240

rows = torch.ones(3, requires_grad=True)
weight = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([weight], lr=0.1)
Times.apply(rows, weight).sum().backward()
optimizer.step()
""",
    "the other of two returns has the right number": """
import torch

class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values, factor, bias):
        ctx.factor = factor
        return values * factor + bias

    @staticmethod
    def backward(ctx, grad):
        if ctx.factor == 0:
            return None, None, None
        return grad * ctx.factor, None  # <- BP240

Scale.apply(torch.ones(3, requires_grad=True), 2.0, 1.0).sum().backward()
""",
    "too many": """
import torch

class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values):
        return values * 2

    @staticmethod
    def backward(ctx, grad):
        return grad, grad  # <- BP240

Scale.apply(torch.ones(3, requires_grad=True)).sum().backward()
""",
    "the gradients have a name": """
import torch

class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values, factor, bias):
        ctx.factor = factor
        return values * factor + bias

    @staticmethod
    def backward(ctx, grad):
        grads = (grad * ctx.factor, None)
        return grads  # <- BP240

Scale.apply(torch.ones(3, requires_grad=True), 2.0, 1.0).sum().backward()
""",
    "a function inside backward returns too": """
import torch

class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values, factor):
        ctx.factor = factor
        return values * factor

    @staticmethod
    def backward(ctx, grad):
        def scaled(value):
            return value * ctx.factor
        return scaled(grad)  # <- BP240

Scale.apply(torch.ones(3, requires_grad=True), 2.0).sum().backward()
""",
    "one of two Functions fails": """
import torch

class First(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values):
        return values * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2

class Second(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values, power):
        return values * power

    @staticmethod
    def backward(ctx, grad):
        return (grad,)  # <- BP240

weight = torch.ones(3, requires_grad=True)
Second.apply(First.apply(weight), 3).sum().backward()
""",
    "a forward without ctx": """
import torch

class Scale(torch.autograd.Function):
    @staticmethod
    def forward(values, factor):
        return values * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor  # <- BP240

Scale.apply(torch.ones(3, requires_grad=True), 2.0).sum().backward()
""",
}
