"""Several modules and packages with relative imports, reloading, runpy, __import__, a traceback through them."""
import importlib
import importlib.machinery
import traceback

import torch

import package
from package import Net, doubled, layers
from package.inner import layers as again

torch.manual_seed(0)
net = Net()
loss = net(torch.ones(1, 2)).sum()
loss.backward()
print(net.l.weight.grad.tolist(), doubled(3), layers is again, package.__file__.endswith("__init__.py"), layers.__spec__.name, package.__path__[0].endswith("package"))
print(layers.__spec__.origin.endswith("layers.py"), isinstance(layers.__loader__, importlib.machinery.SourceFileLoader))
print(importlib.reload(layers).double(2), importlib.import_module("package.late").factor)
try:
    layers.broken(torch.ones(2))
except RuntimeError:
    traceback.print_exc()
try:
    import package.missing
except ImportError as error:
    print(error)
