import torch

w = torch.ones(2, requires_grad=True)

def numbers(n):
    """A generator that is sent to, thrown into and closed."""
    got = None
    try:
        for i in range(n):
            try:
                got = yield (w * i).sum() if got is None else got * 2
            except ValueError as error:
                print("inside", error)
                got = yield -1
    finally:
        print("closed", got)
    return "done"

g = numbers(5)
print(next(g), g.send(torch.ones(1)), g.throw(ValueError("thrown")), g.send(None))
g.close()

def outer():
    result = yield from numbers(1)
    print("result", result)
    x = yield
    print("sent", x)

g = outer()
print([next(g), next(g)])
try:
    g.send(7)
except StopIteration as stop:
    print("stopped", stop.value)
print(sum(t.item() for t in numbers(3)), g.gi_frame, g.gi_running)

def empty():
    return
    yield

def annotated() -> "int":
    x: int = yield 1
    y: int = (yield 2) + (yield 3)
    return x, y

print(list(empty()))
g = annotated()
print(next(g), g.send(1), g.send(2))
try:
    g.send(3)
except StopIteration as stop:
    print(stop.value)

def leaks():
    yield 1
    raise KeyError("from a generator")

try:
    list(leaks())
except KeyError as error:
    import traceback
    traceback.print_exc()

def stops():
    yield 1
    raise StopIteration

try:
    list(stops())
except RuntimeError as error:
    traceback.print_exc()
