"""BP241 custom-function-gradient-shape."""

PROGRAMS = {
    "a number stands before the tensor": """
import torch

class Power(torch.autograd.Function):
    @staticmethod
    def forward(ctx, exponent, values):
        ctx.save_for_backward(values)
        ctx.exponent = exponent
        return (values**exponent).sum(0)

    @staticmethod
    def backward(ctx, grad):
        (values,) = ctx.saved_tensors
        return (
            None,
            ctx.exponent * grad[:1],  # <- BP241
        )

values = torch.ones(4, 3, requires_grad=True)
Power.apply(2, values).sum().backward()
""",
    "an early return with fewer values is not meant": """
import torch

class Affine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, weight):
        ctx.save_for_backward(rows, weight)
        return rows @ weight.t()

    @staticmethod
    def backward(ctx, grad):
        rows, weight = ctx.saved_tensors
        if not ctx.needs_input_grad[1]:
            return grad @ weight
        return grad @ weight, grad  # <- BP241

Affine.apply(torch.ones(6, 3), torch.ones(4, 3, requires_grad=True)).sum().backward()
""",
    "a plain function applies it": """
import torch

class Half(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, factor):
        return rows.sum(1) * factor

    @staticmethod
    def backward(ctx, grad):
        return grad[:2], None  # <- BP241

half = Half.apply
rows = torch.ones(3, 2, requires_grad=True)
out = half(rows, 0.5)
out.sum().backward()
""",
}
