import torch

w = torch.ones(2, requires_grad=True)

def f(a, b=w * 2, /, c=3, *args, d, e=lambda x=1: x + 1, **kwargs):
    return a, b, c, args, d, e(), sorted(kwargs)

print(f(1, d=2), f(1, 2, 3, 4, 5, d=6, g=7), f(*[1, 2], *(3,), **{"d": 4}, **dict(h=5)))
print(f(*(x for x in (1, 2)), d=(yes := 1), k=[y for y in (1,)]))
sorted_by = sorted([w, w * 2], key=lambda t: -t.sum().item())
print(sorted_by[0], (lambda *a, **k: (a, k))(1, x=2), (lambda: (yield))().__class__.__name__)
compose = lambda *fs: lambda x: compose(*fs[1:])(fs[0](x)) if fs else x
print(compose(torch.sin, lambda t: t * 2)(w))

def recursive(n, t): return t if not n else recursive(n - 1, t * 2)
print(recursive(5, w))

def defaults(x=[], *, t=torch.zeros(1)):
    x.append(1)
    t += 1
    return len(x), t.item()
print(defaults(), defaults())
print(defaults.__defaults__, defaults.__kwdefaults__, f.__code__.co_varnames, f.__code__.co_argcount, f.__code__.co_posonlyargcount)

def closure():
    made = []
    for i in range(3):
        def inner(i=i): return i * len(made)
        made.append(inner)
    return [g() for g in made], inner.__closure__[0].cell_contents is made
print(closure())

namespace = {"w": w, "torch": torch}
exec("z = w * 5\ndef g(q):\n    return q.grad_fn\n", namespace)
print(namespace["z"], namespace["g"](namespace["z"]) is not None, eval("w.sum() + 1", namespace), eval(compile("w * 2", "<mine>", "eval")))
exec(compile("(w * 2).sum().backward(); print(w.grad)", "<text>", "exec"))
try:
    exec("w.missing")
except AttributeError:
    import traceback
    traceback.print_exc()
def with_locals():
    a = 1
    exec("b = a + 1")
    return sorted(locals()), eval("a + 1"), [eval("1") for _ in range(1)]
print(with_locals())
print(f"{w.sum():.2f} {f'{w[0]!r:>10}'} {w.shape[0]=} {'nested ' + f'{1 + 1}'} {{}} {w.grad!s:.9}"
      f"{'a' 'b'}" "c" f'{(lambda: 3)()}')
print("%s %r" % (w.sum().item(), 1), "{0.shape} {x}".format(w, x=1))
print(1 if w.grad is None else 2, not w.requires_grad, w.is_leaf and w.grad is not None or 3, 0 < w.sum() < 5 != 4)
x = (w
     * 2  # a comment
     + 1); y = x \
    .sum()
print(y, ..., w[..., 0], w[None, :1], [*w.tolist(), *[1]], {**{"a": 1}, "b": 2}, {*"ab"} == {"a", "b"}, -w, ~torch.tensor(True), +w @ w)
print(__name__, __doc__, __file__.rsplit("/", 1)[-1], __spec__, __package__, __loader__.__class__.__name__)
