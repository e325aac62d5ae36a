import torch

w = torch.ones(3, requires_grad=True)
if (y := w * 2).sum() > 3 and (n := y.numel()):
    print(y, n)
while (total := y.sum()) < 20:
    y = y * 2
print(total)
print([z := i, z + 1] if (i := 5) else None)
rows = [(last := row * 2).sum() for row in (w, w + 1)]
print(rows, last)
print({k: (v := k * w) for k in range(2)}, v, {(q := i) for i in range(3)}, q)
print(list(map(lambda x: (t := x * 2) + t, [1, 2])))
print(any((witness := x) > 1 for x in [0, 2, 3]), witness)

def f():
    inner = [keep := a * b for a in (w, w * 2) if (b := a.sum()) > 0 for _ in range(2)]
    return keep, len(inner), b, sorted(locals())

print(f())
squares = [[x * y for y in row] for x, *row in [(1, 2, 3), (4, 5, 6)]]
gen = (t.sum() for t in [w * i for i in range(3)] if t.requires_grad)
print(squares, sum(gen), {a: b for a, b in zip("ab", (w, w))})

class Body:
    xs = [1, 2]
    ys = [x * 2 for x in xs]
    zs = [y for x in xs for y in range(x)]
    print(sorted(k for k in locals() if len(k) == 2))

print([lambda: i for i in range(3)][0](), (lambda: (k := 3))())
print([[(a, b) for a in [w.sum()]] for b in [w.mean()]])
try:
    print([1 / x for x in (1, 0)])
except ZeroDivisionError:
    import traceback
    traceback.print_exc()
