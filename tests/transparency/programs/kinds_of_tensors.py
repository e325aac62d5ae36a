"""Sparse, nested, complex, quantised, bf16, fp16, meta, integer, empty, zero-dimensional, views, foreign memory."""
import warnings

import numpy
import torch
from torch.utils._pytree import tree_map
from torch import nn

warnings.simplefilter("ignore")
torch.manual_seed(0)
for layout in ("to_sparse", "to_sparse_csr", "to_sparse_csc"):
    s = getattr(torch.eye(3), layout)().requires_grad_()
    d = torch.randn(3, 2, requires_grad=True)
    out = s @ d
    out.sum().backward()
    print(layout, d.grad.tolist(), s.grad.layout if s.grad is not None else None)
e = nn.Embedding(5, 2, sparse=True)
optimizer = torch.optim.SparseAdam(e.parameters(), 0.1)
for _ in range(3):
    optimizer.zero_grad()
    e(torch.tensor([1, 3, 3])).sum().backward()
    optimizer.step()
print(e.weight.grad.coalesce().values().tolist(), e.weight.sum().item().hex())
coo = torch.sparse_coo_tensor([[0, 1], [1, 0]], torch.ones(2, requires_grad=True), (2, 2))
torch.sparse.sum(coo).backward()
for kind in (torch.strided, torch.jagged):
    n = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=kind, requires_grad=True)
    m = nn.Linear(3, 2)
    o = m(n)
    o = o * 2
    torch.cat([t.flatten() for t in o.unbind()]).sum().backward()
    print(kind, [t.shape for t in n.grad.unbind()], m.weight.grad.tolist())
c = torch.randn(3, dtype=torch.cfloat, requires_grad=True)
f = torch.fft.fft(c)
g = torch.fft.irfft(torch.fft.rfft(c.abs()))
(f.abs().sum() + g.sum() + c.conj().real.sum() + torch.view_as_real(c).sum()).backward()
print(c.grad.tolist(), c.grad.is_conj())
neg = torch._neg_view(torch.ones(2)) * 1
q = torch.quantize_per_tensor(torch.randn(3), 0.1, 0, torch.qint8)
r = q.dequantize()
print(q.int_repr().tolist(), r.tolist(), neg.tolist())
qat = torch.fake_quantize_per_tensor_affine(torch.ones(3, requires_grad=True), 0.1, 0, -128, 127)
qat.sum().backward()
for dtype in (torch.bfloat16, torch.float16, torch.float64):
    t = torch.ones(4, dtype=dtype, requires_grad=True)
    u = (t * 300).square()
    u.sum().backward()
    print(dtype, u.tolist(), t.grad.tolist())
for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
    t8 = torch.ones(2).to(dtype)
    print(t8.float().tolist())
meta = torch.ones(3, device="meta", requires_grad=True)
(meta * 2).sum().backward()
print(meta.grad.device)
with torch.device("meta"):
    big = nn.Linear(100000, 100000)
big2 = big(torch.ones(1, 100000, device="meta"))
empty = torch.empty(0, 3, requires_grad=True)
empty.sum().backward()
zero = torch.tensor(3.0, requires_grad=True)
zero.backward()
print(empty.grad.shape, zero.grad)
base = torch.zeros(6, requires_grad=True)
v = base.view(2, 3).t()[1:]
w = v.clone()
w[0] = 5
x, y = w.split(1)
z = torch.as_strided(base, (2, 2), (1, 1))
(x.sum() + y.sum() + z.sum() + base.expand(2, 6).sum()).backward()
print(base.grad.tolist())
array = numpy.ones(3, numpy.float32)
shared = torch.from_numpy(array)
array[0] = 7
other = shared * 2
array2 = other.numpy()
print(other.tolist(), torch.frombuffer(bytearray(8), dtype=torch.int32), array2.sum())
i = torch.arange(5)
j = i // 2
k = i > 2
cow = torch._lazy_clone(torch.ones(3))
cow2 = cow * 2
print(torch._C._is_cow_tensor(cow), cow2.tolist())
cow.add_(1)
print(torch._C._is_cow_tensor(cow))
with torch.inference_mode():
    inf = torch.ones(2)
    inf2 = inf * 2
    inf2 += 1
try:
    (inf2 * torch.ones(2, requires_grad=True)).sum().backward()
except RuntimeError as error:
    print(error)
mkl = torch.ones(2, 2).to_mkldnn()
mkl2 = mkl * 2
print(mkl2.to_dense().tolist())
uninit = nn.LazyLinear(3)
print(type(uninit.weight).__name__)
print(uninit(torch.ones(1, 2)).shape, type(uninit.weight).__name__)
masked = torch.masked.masked_tensor(torch.ones(3), torch.tensor([True, False, True]), requires_grad=True)
masked.sum().backward()
print(masked.grad)
zt = torch._efficientzerotensor(3)
zt2 = zt + 1
print(zt2.tolist())

# tensors that begin behind the first element of a storage that has no memory: their address is the offset
print(zt[1:], zt[2], torch._efficientzerotensor(300, 300)[200:].sum())


class Wrapped(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        form = {"strides": inner.stride(), "storage_offset": inner.storage_offset(), "dtype": inner.dtype}
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, **form, requires_grad=inner.requires_grad)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        out = func(*tree_map(lambda x: x.inner if isinstance(x, Wrapped) else x, args), **(kwargs or {}))
        return tree_map(lambda x: Wrapped(x) if isinstance(x, torch.Tensor) else x, out)


hollow = Wrapped(torch.ones(6, requires_grad=True))
behind = hollow[2:]
(given,) = torch.autograd.grad(behind.sum(), hollow)
print(behind.inner, given.inner)
