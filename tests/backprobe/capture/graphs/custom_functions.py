import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * x, x + y

    @staticmethod
    def backward(ctx, g, _h):
        x, _y = ctx.saved_tensors
        return (2 * x * g if g is not None else None), None


torch.manual_seed(0)
x = torch.ones(3, requires_grad=True)
y = torch.ones(3, requires_grad=True)
a, b = Square.apply(x * 1, y)
a.sum().backward(retain_graph=True)
a.sum().backward()
try:
    a.sum().backward()
except RuntimeError as error:
    print("a second time:", len(str(error)) > 0)
z = x * y
z.retain_grad()
h = z.register_hook(lambda g: g * 2)
(z * z).sum().backward()
w = torch.ones(2, requires_grad=True)
q = w.exp()
r = q * 2
q.add_(1)
try:
    r.sum().backward()
    q.sum().backward()
except RuntimeError as error:
    print("in place:", len(str(error)) > 0)
