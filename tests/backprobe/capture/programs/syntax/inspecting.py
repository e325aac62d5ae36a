"""The module's docstring."""
from __future__ import annotations

import dis
import inspect
import linecache
import sys
import warnings
import torch

w = torch.ones(2, requires_grad=True)

def f(x: Missing, *, y: list[Nothing] = None) -> Never:
    """f's docstring"""
    z: Undefined = x * 2
    here = sys._getframe()
    return sorted(locals()), here.f_lineno, here.f_code.co_firstlineno, z

print(f(w)[:3], f.__annotations__, f.__doc__)
print(inspect.getsource(f), inspect.signature(f), inspect.getsourcelines(f)[1], inspect.getdoc(f), inspect.getfile(f) == __file__)
print({line for _, _, line in f.__code__.co_lines()} - {None}, f.__code__.co_qualname, f.__code__.co_flags, f.__code__.co_freevars)
print(sorted(k for k in globals() if not k.startswith("__")), sorted(vars(sys.modules["__main__"])) == sorted(globals()))
warnings.simplefilter("always")
warnings.warn("one")
def warns(level):
    warnings.warn(f"level {level}", UserWarning, stacklevel=level)
warns(1)
warns(2)
float(w.sum())
(w * 2).grad
torch.tensor(w)
print(linecache.getline(__file__, 1), end="")
class C:
    """C's docstring"""
    def m(self):
        # a comment in m
        return [v for v in locals()]
print(C().m(), inspect.getsource(C.m), inspect.getsource(C), C.m.__qualname__, C.__module__)
g = lambda q: sorted(locals())
print(g(1), inspect.getsource(g))
def outer():
    cell = w * 2
    def inner():
        return cell, sorted(locals())
    return inner()[1], sorted(locals()), inspect.stack()[0].lineno, inspect.stack()[0].code_context
print(outer())
def nothing(): "only a docstring"
def ellipsis_only(): ...
print(nothing(), ellipsis_only(), nothing.__doc__)
print(inspect.currentframe().f_lineno, sys._getframe(0).f_code.co_name)
def frame_of(t):
    frame = inspect.currentframe()
    names = sorted(frame.f_locals)
    return names, frame.f_back.f_lineno, inspect.getframeinfo(frame).code_context
print(frame_of(w))
def positions():
    try:
        return w.data.nope[0] + (w *
            2).sum()
    except AttributeError as error:
        return [(p.lineno, p.end_lineno, p.colno, p.end_colno, p.line) for p in __import__("traceback").extract_tb(error.__traceback__)]
print(positions())
print(sys.getrefcount(object()) , len(sys._getframe().f_globals["__builtins__"].__name__))
del w
try:
    w
except NameError as e:
    print(e, e.name)
