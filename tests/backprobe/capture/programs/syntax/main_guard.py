import sys, os
sys.dont_write_bytecode = True
from layout import helper
from layout.inner import deep, again
import layout.inner.deep as d
import loose.part
import loose
from layout import *
try:
    import no_such_module_here
except ImportError as error:
    print(error, error.name)
if sys.version_info > (3,):
    import layout.late
def lazily():
    from layout.inner import lazy
    return lazy.value
print(helper.__name__, helper.__package__, helper.__file__.rsplit("/", 2)[-2:], deep.up is helper, again, d.level, loose.part.x)
print(loose.__path__.__class__.__name__, getattr(loose, "__file__", None), layout.__path__[0].rsplit("/", 1)[-1], public, lazily())
print(helper.__spec__.origin == helper.__file__, helper.__loader__.get_source("layout.helper")[:10], helper.__cached__ is not None)
import importlib, inspect, pkgutil
print(sorted(m.name for m in pkgutil.iter_modules(layout.__path__)), inspect.getsource(helper.double))
print(importlib.reload(helper).double(2), importlib.import_module("layout.late").__name__)
if __name__ == "__main__":
    print("main", sys.argv, sys.path[0].rsplit("/", 1)[-1], sorted(k for k in sys.modules if k.split(".")[0] in ("layout", "loose")))
    helper.fails()
