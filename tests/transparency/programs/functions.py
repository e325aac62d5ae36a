"""autograd.Function: right ones and wrong ones."""
import traceback

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class Square(Function):
    @staticmethod
    def forward(ctx, x, scale=1.0):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x * x * scale

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 2 * x * ctx.scale, None


class Later(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, y):
        return x * y, x + y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx, g, _):
        x, y = ctx.saved_tensors
        return g * y, g * x

    @staticmethod
    def jvp(ctx, dx, dy):
        return dx, None


class InPlace(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return g * 2


class Holes(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        return x * 1, y * 1

    @staticmethod
    def backward(ctx, gx, gy):
        print("holes", gx is None, gy is None)
        return gx, gy


class WrongCount(Square):
    @staticmethod
    def backward(ctx, g):
        return g


class WrongShape(Square):
    @staticmethod
    def backward(ctx, g):
        return g.sum().expand(7), None


class NoBackward(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2


class Raises(Square):
    @staticmethod
    def backward(ctx, g):
        raise ValueError("from the author")


class NotTensor(Square):
    @staticmethod
    def backward(ctx, g):
        return 3, None


class Old(Function):
    def forward(self, x):
        return x


x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
Square.apply(x, 2.0).sum().backward()
print(x.grad)
a, b = Later.apply(x, x.detach() * 2)
print(a.requires_grad, b.requires_grad, b.grad_fn)
a.sum().backward()
print(x.grad, torch.vmap(lambda t: Later.apply(t, t)[0])(torch.ones(2, 2)))
h = x * 1
i = InPlace.apply(h)
print(i is h, h.grad_fn.name(), h._version)
i.sum().backward()
print(x.grad)
p, q = Holes.apply(x, x)
q.sum().backward()
print(torch.autograd.gradcheck(Square.apply, (torch.randn(3, dtype=torch.double, requires_grad=True),)))
print(torch.autograd.gradgradcheck(Square.apply, (torch.tensor([1.0, 2.0], dtype=torch.double, requires_grad=True),)))
for wrong in (WrongCount, WrongShape, NoBackward, Raises, NotTensor):
    try:
        wrong.apply(x).sum().backward()
    except Exception:
        traceback.print_exc()
try:
    Old()(x)
except RuntimeError as error:
    print(str(error)[:60])
y = Square.apply(x)
y.sum().backward()
try:
    y.sum().backward()
except RuntimeError as error:
    print(error)
(g,) = torch.autograd.grad(Square.apply(x).sum(), x, create_graph=True)
print(g.grad_fn.name(), torch.autograd.grad(g.sum(), x))
try:
    (g,) = torch.autograd.grad(InPlace.apply(x * 1).sum(), x, create_graph=True)
    g.sum().backward()
except RuntimeError as error:
    print(error)
