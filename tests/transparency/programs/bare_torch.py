"""Control flow, generators, async, closures, dataclasses and exceptions around tensors; einops-like code."""
import asyncio
import contextlib
import dataclasses
import functools
import itertools

import torch

torch.manual_seed(0)


@dataclasses.dataclass
class State:
    h: torch.Tensor
    log: list = dataclasses.field(default_factory=list)


def steps(state, n):
    for i in range(n):
        state.h = state.h * 1.5 + i
        state.log.append(state.h)
        got = yield state.h
        if got is not None:
            state.h = state.h + got


def rearrange(t, *shape):
    return t.reshape(*shape) if (k := len(shape)) > 1 else t.flatten(k - 1)


x = torch.ones(2, requires_grad=True)
state = State(x)
g = steps(state, 4)
print(next(g).tolist(), g.send(x * 2).tolist(), [t.tolist() for t in g])
sum(state.log).sum().backward()
print(x.grad.tolist())


async def one(i):
    await asyncio.sleep(0)
    y = (x * i).sum()
    y.backward()
    return y.item()


async def all_of_them():
    return await asyncio.gather(*(one(i) for i in range(3)))


print(asyncio.run(all_of_them()), x.grad.tolist())
table = {"w": x.detach().clone().requires_grad_()}
table["w"].grad = torch.zeros(2)
table["w"].grad += 1
a, (b, *c) = table["w"] * 2, (x * 3).unbind()
d = [v * 2 for v in (a, b) if v.requires_grad]
e = functools.reduce(torch.add, [t.sum() for t in d])
e.backward()
print(table["w"].grad.tolist(), len(c))
with contextlib.suppress(RuntimeError):
    e.backward()
    print("not here")
try:
    x += 1
except RuntimeError as error:
    print(error)
with torch.no_grad():
    x += 1
    x[0] = 5
x.data.mul_(2)
print(x.tolist(), x._version)
match (x.shape[0], x.requires_grad):
    case (2, True):
        z = rearrange(x * 1, 1, 2)
    case _:
        z = None
print(z.shape, rearrange(x, 2).shape)
del a, z
for (i, t), u in zip(enumerate(x), itertools.count()):
    if u:
        continue
    t = t * 2
    t.backward()
print(x.grad.tolist())
fn = lambda t, *, k=2: (t**k).sum()
print(torch.autograd.grad(fn(x, k=3), x))
y = x * 2
y.retain_grad()
w = y * y
y = y + 1
w.sum().backward(retain_graph=True)
w.sum().backward()
x.grad.zero_()
x.grad = None
x.requires_grad_(False)
x.requires_grad = True
old = x
x = x.double()
(x * 1).sum().backward()
print(old.grad.dtype, x.grad_fn.name(), x.retains_grad)
with torch.set_grad_enabled(False), torch.autocast("cpu"):
    v = old @ old
print(v.requires_grad, torch.is_autocast_enabled("cpu"))


@torch.no_grad()
def frozen(t):
    s = t * 2
    return s


@torch.inference_mode()
def inferred(t):
    return t * 2


print(frozen(old).requires_grad, inferred(old).is_inference())
p = torch.nn.Parameter(torch.ones(2))
p.data = torch.zeros(3)
(p * 2).sum().backward()
print(p.grad.shape, p.grad.tolist())
p.grad.detach_()
t1 = torch.ones(2).set_(torch.ones(3).untyped_storage(), 0, (3,))
t1.resize_(2)
print(t1, torch.equal(t1, t1.swapaxes(0, 0)))
