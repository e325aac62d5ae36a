import torch
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
x = torch.linspace(0, 1, 5, requires_grad=True)
y = (x**3).sum()
(g,) = torch.autograd.grad(y, x, create_graph=True)
(h,) = torch.autograd.grad(g.sum(), x, create_graph=True)
h.sum().backward()
a = torch.ones(3, requires_grad=True)
b = a * 2
c = b * 3
d = torch.autograd.grad(c.sum(), b)
e = torch.autograd.grad((a * 2).sum(), [a, b], allow_unused=True)


def f(t):
    return torch.sin(t) * t


k = checkpoint(f, a * 1, use_reentrant=False)
k.sum().backward()
k = checkpoint(f, a * 1, use_reentrant=True)
k.sum().backward()
s = (a * a).sum()
s.backward(inputs=[a])
table = torch.nn.Embedding(5, 3, sparse=True)
table(torch.tensor([1, 2])).sum().backward()
z = torch.ones(3, dtype=torch.complex64, requires_grad=True)
(z * z.conj()).real.sum().backward()
bf = torch.ones(3, dtype=torch.bfloat16, requires_grad=True)
(bf.float() * bf.double()).sum().backward()
edge = torch.autograd.graph.get_gradient_edge(a * 3)
torch.autograd.backward([edge], [torch.ones(3)])
inner = (torch.ones(2, requires_grad=True) * 2).sum()
o = a * 5
o.register_hook(lambda _g: inner.backward())
o.sum().backward()
with torch.autograd.graph.saved_tensors_hooks(lambda t: (1, t), lambda p: p[1]):
    r = a * a
r.sum().backward()
with torch.autograd.graph.save_on_cpu():
    r = a * a
r.sum().backward()
t = torch.ones(3, requires_grad=True)
bad = t * 2
bad.register_hook(lambda _g: 1 / 0)
try:
    (bad * t).sum().backward()
except ZeroDivisionError:
    print("a hook raised")
