"""A docstring."""
from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import enum
import functools
import inspect

print(__doc__, __name__, __annotations__)


def only_doc():
    """Only a docstring."""


print(only_doc.__doc__, only_doc())


def counted(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        calls.append(function.__name__)
        return function(*args, **kwargs)

    return inner


calls: list[str] = []


@counted
def gen(n, /, *rest, key=1, **more):
    total = 0
    for i in range(n):
        got = yield i * key
        total += got or 0
    else:
        total += 100
    return total


def outer():
    return (yield from gen(3, key=2))


g = outer()
print(next(g), g.send(5), g.send(6))
try:
    g.send(7)
except StopIteration as stop:
    print("returned", stop.value)
print(calls, list(gen(2)))


class Color(enum.Enum):
    RED = 1
    GREEN = 2


class Box:
    __slots__ = ("_v", "log")
    x: int = 3
    y = [i for i in range(x)]

    def __init__(self):
        self.log = []
        self._v = 0

    @property
    def v(self):
        self.log.append("get")
        return self._v

    @v.setter
    def v(self, value):
        self.log.append("set")
        self._v = value

    def __getitem__(self, key):
        self.log.append(("getitem", key))
        return 1

    def __setitem__(self, key, value):
        self.log.append(("setitem", key, value))

    def __private(self):
        __local = 5
        __local += 1
        return __local, __class__.__name__


b = Box()
b.v = 3
b.v += 1
b["k"] = 2
b["k"] += 5
b.v, b["z"], (q, *r) = 1, 2, (3, 4, 5)
b.v: int = 9
print(b.log, q, r, b._Box__private(), Color.RED, list(Color), Box.y)


@dataclasses.dataclass(order=True)
class Point:
    x: int
    y: int = 0


def kind(value):
    match value:
        case Point(x=0, y=yy):
            return f"on axis {yy}"
        case [first, *others] if first:
            return first, others
        case {"k": k, **left}:
            return k, left
        case str() as s:
            return s
        case _:
            return None


print(kind(Point(0, 3)), kind([1, 2, 3]), kind({"k": 1, "z": 2}), kind("s"), kind(4))
if (n := len("abc")) > 2 and [m := n * 2, m]:
    print(n, m)
print([y for x in range(3) if (y := x * x)], y)


async def work(i):
    async with lock():
        await asyncio.sleep(0)
        return i * 2


@contextlib.asynccontextmanager
async def lock():
    yield 1


async def numbers():
    for i in range(3):
        yield i


async def main():
    out = [await work(i) async for i in numbers()]
    async for j in numbers():
        out.append(j)
    return out + await asyncio.gather(work(7), work(8))


print(asyncio.run(main()))


def flow(n):
    global counter
    for i in range(n):
        try:
            if i == 1:
                continue
            if i == 3:
                break
            counter += 1
        except ZeroDivisionError:
            pass
        else:
            counter += 10
        finally:
            counter += 100
    while counter > 1000:
        counter -= 1
    else:
        counter += 0
    with contextlib.suppress(ValueError), contextlib.ExitStack() as (stack):
        raise ValueError
    return counter


counter = 0
print(flow(5))
try:
    raise ExceptionGroup("many", [ValueError(1), TypeError(2)])
except* ValueError as group:
    print("group", group.exceptions)
except* TypeError:
    print("type")
a = b2 = c = [1, 2]
(d, e), f = (1, 2), 3
del a, d
print("a" in globals(), b2, c, e, f, [k for k in globals() if "bp" in k], sorted(k for k in dir() if "bp" in k))
print(inspect.getsource(flow)[:30], inspect.signature(gen), flow.__code__.co_firstlineno, kind.__qualname__)
print((lambda x, y=2: (x, y, sorted(locals())))(1), eval("1+1"), [exec("zz = 3"), zz])
assert counter, "no"
lines = [ln for _, _, ln in flow.__code__.co_lines() if ln]
print(min(lines), max(lines))


def locals_are(p):
    q = p
    r = q
    return sorted(locals().items())


print(locals_are(1))
