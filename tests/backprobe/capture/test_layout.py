"""What the compiled core reads by the layout that it learned is what torch's attributes say."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import torch

from backprobe.capture.torch_access import native, native_layout
from tests.backprobe.capture.in_process import recorded
from tests.support.resources import lack


@pytest.fixture(autouse=True)
def _core() -> None:
    if native.native is None:
        lack("core", "core does not serve here")


PROGRAM = """
import torch
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
w = torch.randn(6, 6, requires_grad=True)
c = torch.randn(2, 3, 3, 3, requires_grad=True)
hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: (t,), lambda kept: kept[0])
class Half(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x, x * 2)
        return x / 2
    @staticmethod
    def backward(ctx, g):
        return g / 2
class Own(torch.Tensor):
    pass
for round in range(4):
    x = torch.randn(4, 6)
    y = (x @ w).sigmoid() * x
    y = y.tanh() * y.T.exp().T + x[:, 1:].sum() * x.conj().real
    z = torch.nn.functional.conv2d(torch.randn(1, 3, 5, 5).to(memory_format=torch.channels_last), c).relu()
    with hooks:
        z = z * z.sigmoid()
    a = (w * w).unsqueeze(0).unsqueeze(0).unsqueeze(0).unsqueeze(0)
    b = a * a.exp()
    d = Half.apply(w) * w.to(torch.bfloat16).to(torch.float32)
    e = w.as_subclass(Own) * 3
    f = checkpoint(lambda t: (t * t).sin(), w, use_reentrant=False)
    g = torch.cat([y, y * y], 0)
    h = torch.view_as_complex(w.reshape(18, 2)).conj() * 2
    k = torch.empty(0, 6) @ w
    m = torch._lazy_clone(w.detach())
    n = (m * w).prod()
    v = x * 1
    v.add_(1)
    v.mul_(w[:4])
    loss = y.sum() + z.sum() + b.sum() + d.sum() + e.as_subclass(torch.Tensor).sum() + f.sum() + g.sum()
    loss = loss + h.abs().sum() + k.sum() + n + v.sum()
    loss.backward(retain_graph=round == 2)
    with torch.no_grad():
        w -= 0.01 * w.grad
    with torch.inference_mode():
        i = w * 2
"""


@pytest.fixture
def learned():
    """Whatever a test teaches the core is forgotten after it."""
    yield native.native
    assert native_layout.learn(native.native) == ""


def rows(record: Any) -> dict[str, Any]:
    """What a record says of tensors and graphs; storages are numbered by addresses that come again."""
    tables = ("saved", "tensors", "snapshots", "nodes", "node_passes", "backward_calls", "inplace_events")
    return {table: [without_storage(row) for row in getattr(record, table)] for table in tables}


def without_storage(row: Any) -> dict[str, Any]:
    """A row but for its storage, its times, and the number that the thread has come to."""
    left_out = {"storage", "duration_ns", "own_ns", "seq"}
    return {name: repr(value) for name, value in msgspec.structs.asdict(row).items() if name not in left_out}


def test_all_of_it_is_found_in_this_torch():
    assert native.unknown_layout == ""


def test_a_program_has_the_same_record_by_layout_and_by_attributes(learned):
    assert learned.use_layout(True)
    by_layout = rows(recorded(PROGRAM))
    learned.use_layout(False)
    by_attributes = rows(recorded(PROGRAM))
    for table, found in by_layout.items():
        assert found == by_attributes[table], table
        assert found, table
    assert len(by_layout["saved"]) > 100


def test_what_cannot_be_told_apart_is_not_used(learned):
    plain = [(tensor, str(tensor.dtype)[6:]) for tensor in native_layout._plain()]
    assert learned.learn_layout(plain, [torch.empty(3)]) == "keys"  # a tensor that is plain, called another
    assert learned.use_layout(True) is False


def test_a_tensor_that_is_not_what_it_says_is_not_used(learned):
    plain = [(tensor, str(tensor.dtype)[6:]) for tensor in native_layout._plain()]
    plain[0] = (plain[0][0], "int8")
    assert learned.learn_layout(plain, native_layout._build_unusual_tensors()) == "dtype"


@pytest.mark.parametrize("elements", [0, 3])
def test_a_tensor_larger_than_its_storage_is_not_read(learned, elements):
    tensor = torch.ones(8)
    tensor.untyped_storage().resize_(4 * elements)
    assert learned.statistics(tensor, 1 << 20, 1 << 20) is None or elements
