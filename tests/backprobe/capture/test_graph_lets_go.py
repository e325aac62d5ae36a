"""What watched a graph dies with it, and a capture leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys

import pytest

from backprobe.capture import run_source
from backprobe.record import check

LETS_GO = """\
import gc, torch, weakref
gc.disable()
alive = []

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g * 2

def step(k):
    w = torch.ones(3, requires_grad=True)
    h = Double.apply(w * w)
    a, b = torch.split(torch.cat([h, h]), 3)
    loss = (a + b).sum()
    alive.extend(weakref.ref(t) for t in (w, h, a, b, loss))
    if k == 0:
        loss.backward()
    if k == 1:
        torch.autograd.grad(loss, w, create_graph=True)
    if k == 2:
        loss.backward(retain_graph=True)

for k in range(4):
    step(k)
print([ref() for ref in alive if ref() is not None])
"""


def test_tensors_and_nodes_die_when_the_program_lets_go() -> None:
    record = run_source(LETS_GO)
    check(record)
    assert record.end is not None
    assert record.end.own_errors == 0, record.end.own_error
    assert record.end.ending == "ended"
    held = {row.type for row in record.nodes if row.died is None and row.variable is None}
    assert held == set(), "every node of the four graphs died"
    assert len({row.node for row in record.nodes}) > 20


def test_the_program_sees_its_tensors_die(capfd) -> None:
    run_source(LETS_GO)
    assert capfd.readouterr().out == "[]\n"


def test_hooks_of_the_program_get_the_numbers_and_dictionaries_that_they_would_have() -> None:
    record = run_source(
        """\
import torch
from torch.utils.hooks import RemovableHandle
w = torch.ones(3, requires_grad=True)
y = w * 2
z = y.sum()
z.backward(retain_graph=True)
before = RemovableHandle.next_id
order = []
handle = y.grad_fn.register_prehook(lambda g: order.append("mine"))
assert handle.id == before, (handle.id, before)
z.backward(retain_graph=True)
assert order == ["mine"]
handle.remove()
z.backward()
assert order == ["mine"]
assert torch.autograd.function._HookMixin._register_hook.__code__.co_name == "_register_hook"
"""
    )
    assert record.end is not None
    assert (record.end.ending, record.end.own_errors) == ("ended", 0), record.raised


GROWTH = """\
import gc, resource, sys
from backprobe.capture import run_source
SOURCE = '''
import torch
lin = torch.nn.Linear(4, 4)
opt = torch.optim.SGD(lin.parameters(), 0.1)
for _ in range(2):
    opt.zero_grad()
    out = lin(torch.ones(2, 4)).relu()
    loss = out.pow(2).mean()
    loss.backward()
    opt.step()
'''
def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
def captures(count):
    for _ in range(count):
        assert run_source(SOURCE).end.own_errors == 0
captures(60)
before = resident()
captures(240)
print(resident() - before)
"""


@pytest.mark.usefixtures("fresh_python")
def test_300_captures_leave_no_memory_behind() -> None:
    done = subprocess.run([sys.executable, "-c", GROWTH], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) < 4 << 20, "less than 18 KB for each capture, which takes some 200 KB while it runs"
