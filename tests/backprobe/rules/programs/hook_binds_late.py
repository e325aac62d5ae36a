"""BP877 hook-binds-late."""

PROGRAMS = {
    "a context that damps stages, an outer loop's factor": """
import torch
from torch import nn

class Damping:
    def __init__(self, stages):
        self.stages, self.handles = stages, []

    def __enter__(self):
        for depth, stage in enumerate(self.stages):
            scale = 0.5 ** (len(self.stages) - depth)
            for parameter in stage.parameters():
                self.handles.append(parameter.register_hook(lambda grad: scale * grad))  # <- BP877

    def __exit__(self, *error):
        for handle in self.handles:
            handle.remove()

net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
with Damping(list(net)):
    net(torch.ones(5, 3)).square().mean().backward()
""",
    "forward hooks that note under the name of a layer": """
import torch
from torch import nn

net, shapes = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)), {}
for name, layer in net.named_children():
    def note(module, args, out):
        shapes[name] = tuple(out.shape)

    layer.register_forward_hook(note)  # <- BP877
net(torch.ones(5, 3)).square().mean().backward()
""",
    "a list of handles, each with its own mask": """
import torch
from torch import nn

net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
masks = [torch.rand(4, 3) > 0.5, torch.rand(1, 4) > 0.5]
handles = [layer.weight.register_hook(lambda grad: grad * mask.any()) for layer, mask in zip(net, masks)]  # <- BP877
net(torch.ones(5, 3)).square().mean().backward()
""",
    "right: the value is bound by a default": """
import torch
from torch import nn

net, norms = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1)), {}
for name, parameter in net.named_parameters():
    parameter.register_hook(lambda grad, name=name: norms.__setitem__(name, grad.norm().item()))
net(torch.ones(5, 3)).square().mean().backward()
""",
    "right: a method is called once for each layer": """
import torch
from torch import nn

class Watch:
    def __init__(self):
        self.seen = []

    def add(self, layers):
        for layer in layers:
            layer.weight.register_hook(lambda grad: self.seen.append((layer.in_features, grad.norm().item())))

watch, net = Watch(), nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
for layer in net:
    watch.add([layer])
net(torch.ones(5, 3)).square().mean().backward()
""",
    "right: what is made in a turn is walked back in it": """
import torch
from torch import nn

net, seen = nn.Linear(3, 1), {}
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(4):
    out = net(torch.randn(5, 3))
    out.register_hook(lambda grad: seen.__setitem__(step, grad.norm().item()))
    optimizer.zero_grad()
    out.square().mean().backward()
    optimizer.step()
""",
    "right: hooks on all layers that read the step, taken off in the same step": """
import torch
from torch import nn

net, seen = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1)), []
for step in range(3):
    handles = []
    for layer in net:
        handles.append(layer.weight.register_hook(lambda grad: seen.append((step, grad.norm().item()))))
    net.zero_grad()
    net(torch.randn(5, 3)).square().mean().backward()
    for handle in handles:
        handle.remove()
""",
    "right: a hook that knows its module": """
import torch
from torch import nn

net, shapes = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1)), {}
for name, layer in net.named_children():
    layer.title = name
    layer.register_forward_hook(lambda module, args, out: shapes.__setitem__(module.title, out.shape))
net(torch.ones(5, 3)).square().mean().backward()
""",
}
