"""Backward calls that pass no Python are found by the sentinels that fire in them."""

from __future__ import annotations

import textwrap
import warnings

from backprobe.capture import run_source
from backprobe.record import Record, check


def run(source: str) -> Record:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls jit.script old
        record = run_source(textwrap.dedent(source))
    check(record)
    assert record.end is not None
    assert record.end.own_errors == 0, record.end.own_error
    return record


SCRIPTED = """\
import torch

@torch.jit.script
def back(x):
    x.backward()
    return x

w = torch.ones(3, requires_grad=True)
y = w * w
y.register_hook(lambda g: None)
loss = y.sum()
back(loss)
"""


def test_a_backward_call_inside_torchscript_is_a_call_of_its_own() -> None:
    record = run(SCRIPTED)
    (call,) = record.backward_calls
    assert (call.entry, call.outcome, call.retain_graph, call.nodes_run, call.nodes_freed) == (
        "unseen", "finished", False, 2, 1
    )  # fmt: skip
    assert call.site is not None
    assert record.sites[call.site].line == 12
    assert [(row.kind, row.call) for row in record.leaf_grads if row.kind != "untouched"] == [("populate", 0)]
    by_name = {row.type: row.node for row in record.nodes}
    order = {row.node: row.position for row in record.node_passes}
    assert order[by_name["SumBackward0"]] == 0
    assert order[by_name["MulBackward0"]] == 1


def test_a_pass_inside_a_hook_is_told_apart_from_the_one_around_it() -> None:
    record = run(
        """\
        import torch

        @torch.jit.script
        def back(x):
            x.backward()
            return x

        u = torch.ones(2, requires_grad=True)
        inner = (u * u).sum()
        w = torch.ones(3, requires_grad=True)
        y = w * w
        y.register_hook(lambda g: back(inner) and None)
        y.sum().backward()
        """
    )
    outer, unseen = record.backward_calls
    assert (outer.entry, unseen.entry, unseen.parent) == ("Tensor.backward", "unseen", outer.call)
    ran = {call.call: {row.node for row in record.node_passes if row.call == call.call and row.position is not None}
           for call in record.backward_calls}  # fmt: skip
    types = {row.node: row.type for row in record.nodes}
    assert sorted(types[node] for node in ran[outer.call]) == ["AccumulateGrad", "MulBackward0", "SumBackward0"]
    assert sorted(types[node] for node in ran[unseen.call]) == ["SumBackward0"]
