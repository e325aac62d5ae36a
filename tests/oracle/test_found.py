"""What the oracle found once, by its smallest program: what a record said of it was wrong, and is right now."""

from __future__ import annotations

import pytest

from tests.oracle.campaign import found_in

FOUND = {
    "a tensor that dies on the way to a backward call does not die on the line before": """\
import torch
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one = torch.nn.Linear(2, 2)
        self.w = torch.nn.Parameter(torch.ones(2))
    def forward(self, x):
        h = self.one(x)
        h = torch.relu(h) * self.w
        return h
a = torch.tensor([[1.0, -2.0], [3.0, 0.5]], requires_grad=True)
b = torch.rand(2)
e = a * b
net = torch.nn.Sequential(Block(), torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Linear(2, 2)))
net(e).sum().backward()
""",
    "a buffer that changes in the statement of a backward call did not change on the line before": """\
import torch
net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
x = torch.tensor([[1.0, -2.0], [3.0, 0.5]])
y = x * 2
net(x).sum().backward()
""",
    "a tensor that was given other memory with the same elements shares it": """\
import torch
a = torch.tensor([[1.0, 2.0], [3.0, 0.5]], requires_grad=True)
t = a
for i in range(3):
    a = a.clamp(min=0)
    t.data = a.data.clone()
""",
    "a moment that was written inside its statement has the modes that hold behind it": """\
import torch
a = torch.ones(2, requires_grad=True)
a.sum().backward()
torch.nn.utils.clip_grad_norm_([a], 0.5)
torch.set_grad_enabled(False)
b = a * 2
""",
    "a view that torch no longer answers for is no root of a graph at the end": """\
import torch
a = torch.tensor([[1.0, -2.0], [3.0, 0.5]], requires_grad=True)
a = a.chunk(2)[0]
with torch.no_grad():
    a[0].mul_(3)
""",
    "a tensor whose new memory has the same bytes in another shape has changed": """\
import torch
z = torch.tensor(3.0)
z.data = torch.tensor([3.0])
""",
    "a tensor that was given an inference tensor's memory has no version any more": """\
import torch
a = torch.tensor([3.0], requires_grad=True)
e = a * 2
e += 1
with torch.inference_mode():
    e.data = torch.ones(2)
""",
    "a walrus in a block is not what a switch elsewhere has noted": """\
import torch
a = torch.ones(2)
@torch.enable_grad()
def f(x):
    y = x * 2
    return y
c = f(a)
with torch.no_grad():
    if True:
        t = (w := (a * 2)) + 1
""",
    "what the first statement of a function does is reported at it, not at the function's entry": """\
import torch
b = torch.ones(2, requires_grad=True)
@torch.no_grad()
def f(x, y):
    torch.nn.utils.clip_grad_norm_([b], 0.5)
    y = b * y
e = f(b, b)
""",
    "an inference tensor that was given other data outside has no version counter": """\
import torch
with torch.inference_mode():
    d = torch.ones(3) * 2
d.data = torch.ones(2)
""",
    "a gradient that a function returned is summed in place, whoever looked at it": """\
import torch
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        ctx.save_for_backward(t)
        return t * 3

    @staticmethod
    def backward(ctx, g):
        t, = ctx.saved_tensors
        out = g * 3
        return out
d = torch.tensor(3.0, requires_grad=True)
e = d * 3
t = Scale.apply(d)
for i in range(3):
    try:
        torch.nn.functional.mse_loss(t, e).backward()
    except Exception:
        pass
""",
    "a backward call of a view that torch no longer answers for raises, and its moments are reported": """\
import torch
a = torch.ones(2, 2, requires_grad=True)
e = a * 2
with torch.no_grad():
    v = e.unsqueeze(0)
t = e.view(-1)
try:
    e.t_()
except Exception:
    pass
def f(x):
    try:
        v.backward(v)
    except Exception:
        pass
    return x
w = f(a)
""",
    "what a backward call brought before a hook is entered is the call's, not the hook's": """\
import torch
def clear(p):
    p.grad = None
a = torch.ones(2, 2, requires_grad=True)
b = torch.ones(2, 2, requires_grad=True)
c = a * 2 + b
a.register_post_accumulate_grad_hook(clear)
c.backward(torch.ones_like(c))
""",
    "a hook that is called twice has two values of one name": """\
import torch
def twice(g):
    h = g * 2
    return h
a = torch.tensor([1.0, 2.0], requires_grad=True)
for t in range(2):
    a.register_hook(twice)
a.sum().backward(retain_graph=True)
""",
    "what a statement did before it raised is seen at the `return` behind it": """\
import torch
a = torch.ones(2)
def f(x):
    try:
        (a.add_(1), x.nothing)
    except Exception:
        pass
    return x
d = f(a)
""",
    "a tensor that changed places with another has its node and its flags": """\
import torch
a = torch.tensor([1.0, 2.0], requires_grad=True)
b = torch.ones(2)
c = a * 2
torch.utils.swap_tensors(c, b)
d = b * 3
d.sum().backward()
""",
    "what a norm changed before a hook of the net is entered is the call's line, not the hook's": """\
import torch

def after_forward(module, given, out):
    return out * 2
a = torch.tensor([[1.0, -2.0], [3.0, 0.5]], requires_grad=True)
net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
net.register_forward_hook(after_forward)
y = net(a).mean()
""",
    "what a norm changed before its own hook, or a part behind it, is entered is the call's line": """\
import torch
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one = torch.nn.Linear(2, 2)
    def forward(self, x):
        h = self.one(x)
        return h * 2
def before_forward(module, given):
    size = len(given)
def after_forward(module, given, out):
    return out * 2
a = torch.tensor([[1.0, -2.0], [3.0, 0.5]], requires_grad=True)
net = torch.nn.Sequential(torch.nn.BatchNorm1d(2), Block(), torch.nn.BatchNorm1d(2), Block())
net[2].register_forward_pre_hook(before_forward)
net[2].register_forward_hook(after_forward)
for i in range(3):
    y = net(a).mean()
""",
    "what a net changed before a function of the same statement is entered is the statement's": """\
import torch
def f(x):
    z = x * 2
    return z
a = torch.tensor([[1.0, -2.0], [3.0, 0.5]], requires_grad=True)
net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
y = f(net(a)).mean()
""",
    "an inference tensor whose shape changed in its own memory has changed": """\
import torch
@torch.inference_mode()
def sealed(t):
    u = t * 3
    return u
a = torch.tensor([[1.0, -2.0], [3.0, 0.5]], requires_grad=True)
e = sealed(a)
b = e.chunk(2)[0]
b.squeeze_()
t = b.clamp(min=0)
""",
    "tensors of one version that changed places have each other's nodes": """\
import torch
a = torch.tensor([1.0, 2.0], requires_grad=True)
b = a * 2
c = -a
torch.utils.swap_tensors(b, c)
b.sum().backward()
""",
}


@pytest.mark.parametrize("what", FOUND)
def test_once_wrong(what: str) -> None:
    assert found_in(FOUND[what], "full") == []
