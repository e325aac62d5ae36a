"""What torch, numpy and the standard library refuse for a tensor that somebody else holds, refers to or has read."""
import copy
import gc
import pickle
import weakref
from weakref import getweakrefcount

import numpy
import torch
from torch import nn
from torch.multiprocessing.reductions import reduce_tensor
from torch.utils import swap_tensors


def told(name, body):
    try:
        print(name, body())
    except Exception as error:
        print(name, "refused:", type(error).__name__, error)


def uses(*tensors):
    return [(t._use_count(), weakref.getweakrefcount(t), getweakrefcount(t), len(weakref.getweakrefs(t))) for t in tensors]


def swapped(a, b):
    held = [a, b]
    swap_tensors(a, b)
    del held
    return a.tolist(), b.tolist(), type(a).__name__, type(b).__name__, a.requires_grad, uses(a, b)


def swap_in_training():
    net = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for step in range(30):
        optimizer.zero_grad()
        loss = net(torch.ones(3, 2)).square().mean()
        loss.backward()
        optimizer.step()
        if step in (3, 27):
            del loss
            net.to(torch.float64 if step == 3 else torch.float32).float()
            net.load_state_dict(nn.Linear(2, 2).state_dict())
    return [(p.shape, p.dtype, p._version) for p in net.parameters()], uses(*net.parameters())


def refused_swaps():
    kept = torch.ones(2)
    ref = weakref.ref(kept)
    told("a weak reference of the program's", lambda: swap_tensors(kept, torch.ones(2)))
    with_callback = torch.ones(2)
    other = weakref.ref(with_callback, print)
    told("with a callback", lambda: swap_tensors(torch.ones(2), with_callback))
    w = torch.ones(2, requires_grad=True)
    loss = (w * w).sum()
    told("a graph that uses it", lambda: swap_tensors(w, torch.ones(2, requires_grad=True)))
    told("its poisoned leaf", lambda: loss.backward())
    y = torch.ones(2, requires_grad=True) * 2
    told("not a leaf", lambda: swap_tensors(y, torch.ones(2)))
    print([weakref.getweakrefcount(t) for t in (kept, with_callback, w, y)], weakref.getweakrefs(kept)[0] is ref, other() is not None)


def inside_a_call(t, other):
    u = t
    swap_tensors(u, other)
    return u


torch.manual_seed(0)
a, b = torch.arange(2), torch.arange(3)
told("plain", lambda: swapped(a, b))
p, q = nn.Parameter(torch.ones(2)), nn.Parameter(torch.zeros(4))
told("parameters", lambda: swapped(p, q))
told("temporaries", lambda: swapped(torch.ones(2) * 2, torch.zeros(2) + 1))
c = torch.arange(2.0)
c = inside_a_call(c, torch.zeros(1))
print(c, uses(c))
p.square().sum().backward()
g = p.grad
print(uses(p, g), g._use_count())
del g
gc.collect()
print(uses(p))
p.grad = None
told("after a backward call", lambda: swapped(p, q))
refused_swaps()
torch.__future__.set_swap_module_params_on_conversion(True)
told("a training", swap_in_training)
net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
net(torch.ones(4, 2)).sum().backward()
told("with gradients", lambda: [(x.dtype, x.grad.dtype) for x in net.to(torch.float64).parameters()])
torch.__future__.set_swap_module_params_on_conversion(False)

x = torch.ones(4)
view = x[1:]
told("resize", lambda: x.resize_(8).shape)
told("resize with a graph", lambda: torch.ones(2, requires_grad=True).resize_(3))
told("resize of numpy's memory", lambda: torch.from_numpy(numpy.ones(2)).resize_(5))
emptied = torch.ones(6)
emptied.untyped_storage().resize_(0)
shape = emptied.shape
other = emptied
print(shape, emptied.untyped_storage().nbytes(), emptied.data_ptr())
emptied.untyped_storage().resize_(24)
emptied.fill_(2.0)
weight = torch.ones(3, requires_grad=True)
product = weight * 3
with torch.no_grad():
    product.untyped_storage().resize_(0)
    weight.untyped_storage().resize_(0)
    moved = weight
    weight.untyped_storage().resize_(12)
    weight.fill_(1.0)
product.untyped_storage().resize_(12)
told("set", lambda: torch.empty(0).set_(x).data_ptr() == x.data_ptr())
told("set with a graph", lambda: weight.set_(torch.ones(2)))
told("data of another type", lambda: setattr(weight, "data", torch.ones(3, dtype=torch.int32)))
weight.data = torch.zeros(3)
cow = torch._lazy_clone(torch.ones(5))
also = cow
print(torch._C._is_cow_tensor(cow), (cow + 1).tolist(), torch._C._is_cow_tensor(cow))
cow.add_(1)
print(torch._C._is_cow_tensor(cow), cow.tolist())
shared = torch.ones(3)
print(shared.is_shared(), shared.share_memory_().is_shared())
told("reduced", lambda: len(reduce_tensor(shared)))
told("reduced with a graph", lambda: reduce_tensor(product))
array = numpy.ones(3)
from_array = torch.from_numpy(array)
told("numpy resize", lambda: array.resize(5))
alone = numpy.ones(3)
told("numpy resize alone", lambda: (alone.resize(5), alone.shape))
memory = bytearray(8)
buffered = torch.frombuffer(memory, dtype=torch.uint8)
told("bytearray held", lambda: memory.extend(b"1"))
del buffered
gc.collect()
told("bytearray free", lambda: memory.extend(b"1"))
stepped = torch.ones(3, requires_grad=True)
squares = stepped.square()
storage = squares.untyped_storage()
print(uses(stepped, squares), storage._use_count() if hasattr(storage, "_use_count") else None)
del storage
halves = squares.unbind()
told("one of several views", lambda: halves[0].mul_(2))
told("a view of a leaf", lambda: stepped[0].mul_(2))
with torch.no_grad():
    part = stepped[:1]
told("a view made without gradients", lambda: part.mul_(2))
detached = squares.detach()
told("detached resize", lambda: detached.resize_(9).shape)
told("deepcopy", lambda: copy.deepcopy(squares))
told("deepcopy of a leaf", lambda: uses(copy.deepcopy(stepped)))
told("pickled", lambda: pickle.loads(pickle.dumps(stepped)).requires_grad)
with torch.inference_mode():
    inference = torch.ones(2)
told("an inference tensor", lambda: inference.add_(1))
told("its counter", lambda: inference._version)
lazy = nn.LazyLinear(2)
told("lazy", lambda: lazy(torch.ones(1, 3)).shape)
told("a wrapped storage", lambda: torch.UntypedStorage(4).resize_(8) is None)
print(uses(x, view, weight, cow, shared, stepped), moved is weight, also is cow, other is emptied)
