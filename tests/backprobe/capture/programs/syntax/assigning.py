import contextlib
import types
import torch

w = torch.ones(4, requires_grad=True)
a = b = c = w * 2
(d, e), [f, *g] = (1, w), [2, 3, 4]
*h, i = w.unbind()
j, = [w]
k = *h, i
print(a is b is c, d, f, g, len(h), j is w, len(k))
o = types.SimpleNamespace(t=w * 1, n=1)
o.t, o.u = o.t + 1, w
o.n += 1
o.list = [w, w]
o.list[0] = o.list[0] * 2
o.list[-1], (o.list[0], z) = 5, (o.list[0], 6)
o.t += 1
m = {}
m["x"] = m["y"] = w * 3
m["x"] += 1
m["x"] **= 2
m.setdefault("l", [])[:] = [1, 2, 3]
m["l"][1:2] = [8, 9]
t = torch.zeros(3, 3)
t[0] = 1
t[1, :] = torch.arange(3.)
t[:, -1] += 5
t[t > 4] *= -1
t[..., 0], t[2] = 7, t[0]
t @= torch.eye(3)
t //= 2
print(t, o.n, m["l"], o.list)
del m["y"], o.u, (a, b), m["l"][0]
print(sorted(m), hasattr(o, "u"), "a" in globals())
x: int
y: torch.Tensor = w * 2
o.v: float = 3.0
m["k"]: int = 4
(paren): int = 5
print(__annotations__, "x" in globals(), paren)

class Order:
    def __init__(self, log): object.__setattr__(self, "log", log)
    def __getitem__(self, key): self.log.append(("get", key)); return 1
    def __setitem__(self, key, value): self.log.append(("set", key, value))
    def __getattr__(self, name): self.log.append(("attr", name)); return 2
    def __setattr__(self, name, value): self.log.append(("setattr", name, value))

log = []
order = Order(log)
def at(value): log.append(("at", value)); return value
order[at(1)] = order.x = at(9)
order[at(2)] += at(3)
order.y -= at(4)
at(order)[at(5)], at(order).z = at(6), at(7)
print([entry for entry in log if entry[1] is not order])

@contextlib.contextmanager
def ctx(value):
    print("in", value)
    try:
        yield value
    finally:
        print("out", value)

with ctx(1) as p, ctx((2, 3)) as (q, r), ctx(4):
    s = p + q + r
with (
    ctx(w * 5) as u,
    torch.no_grad(),
    contextlib.suppress(ZeroDivisionError),
    ctx({}) as o.held,
    ctx([1]) as m["held"],
):
    v = u * 2
    1 / 0
print(s, v.requires_grad, o.held, m["held"])
with open(__file__) as source: first = source.readline()
print(first, end="")
for o.index in range(2): pass
for m["i"], (q, *r) in [(0, "abc"), (1, "de")]: print(m["i"], q, r)
else: print("else", o.index)
for n in w.detach(): last = n
print(last)
if 1: w = w * 2; y = w
elif 2: pass
print(y.sum()); z = 1; print(z)
