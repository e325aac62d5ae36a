"""BP242 custom-function-missing-gradient."""

_GATE = """
import torch
from torch import nn

class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, power, scale):
        ctx.save_for_backward(rows, scale)
        return rows * scale

    @staticmethod
    def backward(ctx, grad):
        rows, scale = ctx.saved_tensors
        {body}

layer = nn.Linear(4, 4)
scale = nn.Parameter(torch.ones(4))
optimizer = torch.optim.SGD([*layer.parameters(), scale], lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    loss = Gate.apply(layer(torch.randn(8, 4)), 2, scale).square().mean(){more}
    loss.backward()
    optimizer.step()
"""

PROGRAMS = {
    "a number stands between the tensors": _GATE.format(body="return grad * scale, None, None  # <- BP242", more=""),
    "the gradient goes by a name that is None": _GATE.format(
        body="for_scale = None\n        return grad * scale, None, for_scale  # <- BP242", more=""
    ),
    "one of two returns says it": _GATE.format(
        body="if grad is None:\n            return None, None, scale\n"
        "        if scale.numel() == 4:\n            return grad * scale, None, None  # <- BP242\n"
        "        return grad, None, grad",
        more="",
    ),
    "the gradient comes by another path": _GATE.format(body="return grad * scale, None, None", more=" + scale.sum()"),
    "a Function that passes its gradient on is not to blame": """
import torch

class Passes(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows):
        return rows * 1

    @staticmethod
    def backward(ctx, grad):
        return grad

class Drops(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, weight):
        return rows * weight

    @staticmethod
    def backward(ctx, grad):
        return grad, None  # <- BP242

weight = torch.nn.Parameter(torch.ones(3))
bias = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([weight, bias], lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    Passes.apply(Drops.apply(bias * 2, weight)).sum().backward()
    optimizer.step()
""",
    "the layers before the Function get none": """
import torch
from torch import nn

class Blend(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, weight):
        ctx.save_for_backward(rows)
        return rows * weight

    @staticmethod
    def backward(ctx, grad):
        (rows,) = ctx.saved_tensors
        return None, (grad * rows).sum(0)  # <- BP242

encoder = nn.Linear(4, 4)
weight = nn.Parameter(torch.ones(4))
optimizer = torch.optim.SGD([*encoder.parameters(), weight], lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    Blend.apply(encoder(torch.randn(8, 4)), weight).square().mean().backward()
    optimizer.step()
""",
    "nothing trains the tensor that gets none": """
import torch

class Mix(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, image):
        return rows + image

    @staticmethod
    def backward(ctx, grad):
        return grad, None

image = torch.ones(3, requires_grad=True)
weight = torch.nn.Parameter(torch.ones(3))
Mix.apply(weight, image).sum().backward()
""",
}
