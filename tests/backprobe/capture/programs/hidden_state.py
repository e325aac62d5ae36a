import copy
import pickle
import sys
import threading
import weakref

import torch
from torch import nn
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

x = torch.ones(3, requires_grad=True)
y = (x * 2).exp()
y.sum().backward(retain_graph=True)
print(y.retains_grad, x.retains_grad, y._backward_hooks, x._backward_hooks, y._version, x._post_accumulate_grad_hooks)
print(sys.getrefcount(torch.ones(2)), sys.getrefcount(y), sys.getrefcount(x.grad))
print(len(_get_current_dispatch_mode_stack()), torch._C._len_torch_function_stack())
print(len(pickle.dumps(x)), copy.deepcopy(x).grad, x.grad.grad_fn, x.grad.requires_grad)
print([type(n).__name__ for n, _ in y.grad_fn.next_functions], y.grad_fn.name(), dir(y.grad_fn) == dir(type(y.grad_fn)))
order = []
a = torch.ones(2, requires_grad=True)
b = a * 3
b.register_hook(lambda g: order.append("tensor") or g * 100)
b.grad_fn.register_prehook(lambda gs: order.append("pre"))
b.grad_fn.register_hook(lambda gi, go: order.append("post"))
b.retain_grad()
b.sum().backward()
print(order, b.grad.tolist(), a.grad.tolist())
print(torch.rand(2).shape, threading.active_count(), sys.getswitchinterval())
c = torch.ones(2, requires_grad=True)
with torch.no_grad():
    c.add_(1)
    d = c * 2
c.requires_grad_(False)
print(c._version, d.requires_grad, d.grad_fn, torch.is_grad_enabled())
e = torch.ones(3).requires_grad_()
f = e[1:]
with torch.no_grad():
    f.mul_(2)
print(e._version, f._version, f._base is e, f.grad_fn.name())
m = nn.Linear(2, 2)
m.register_forward_hook(lambda mod, i, o: o * 2)
m.register_full_backward_hook(lambda mod, gi, go: None)
m(torch.ones(1, 2)).sum().backward()
print(m.weight.grad.tolist(), m._forward_hooks.keys())
print(sys.argv, sys.path[0] == __file__.rpartition("/")[0], __name__, __spec__, __package__, type(__loader__).__name__)
print(sorted(globals())[:9], sys.modules["__main__"].__dict__ is globals())


class Sub(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        seen.append(getattr(func, "__name__", str(func)))
        return super().__torch_function__(func, types, args, kwargs or {})


seen = []
s = torch.ones(2).as_subclass(Sub)
t = s * 2
u = t.sum()
print(seen, type(u).__name__)
with torch.device("cpu"):
    v = torch.ones(2)
    w = v * 2
from torch.overrides import TorchFunctionMode


class Log(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        names.append(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))


names = []
with Log():
    i = torch.ones(2, requires_grad=True)
    j = i * 2
    j.sum().backward()
    k = i.grad
print(names)
r = weakref.ref(j)
del j
print(r() is None)
