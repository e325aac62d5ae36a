import gc
import weakref

import torch


class Held(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.token = Token()
        alive.append(weakref.ref(ctx.token))
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


class Token:
    pass


alive = []
x = torch.ones(3, requires_grad=True)
y = Held.apply(x)
z = (y * y).sum()
refs = [weakref.ref(t) for t in (y, z)]
z.backward()
print([r() is not None for r in refs], [a() is not None for a in alive])
del y, z
print([r() is not None for r in refs], [a() is not None for a in alive])
for _ in range(3):
    loss = Held.apply(x).sum()
del loss
gc.collect()
print([a() is not None for a in alive])
print(x._version, x.retains_grad, x._backward_hooks, x.grad._version)


def make():
    h = torch.ones(2) * 3
    keep.append(weakref.ref(h))
    return None


keep = []
make()
print(keep[0]() is None)
