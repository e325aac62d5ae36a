"""Tensors that have no plain memory do not blind the record to the others."""

from __future__ import annotations

import textwrap
import warnings

import pytest

from backprobe.capture import run_source
from backprobe.record import Record, check


def run(source: str) -> Record:
    """The record of a program, without an internal error."""
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("default")
        record = run_source(textwrap.dedent(source))
    assert record.end is not None
    assert record.end.own_errors == 0, record.end.own_error
    check(record)
    return record


@pytest.mark.parametrize(
    "made",
    [
        "torch.eye(3).to_sparse_csr()",
        "torch.eye(3).to_sparse_csc()",
        "torch.eye(4).to_sparse_bsr((2, 2))",
        "torch.eye(3).to_sparse()",
        "torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])",
        "torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)",
    ],
)
def test_what_follows_a_tensor_without_plain_memory_is_recorded(made: str) -> None:
    record = run(
        f"""\
        import torch
        odd = {made}
        a = torch.ones(3, requires_grad=True)
        b = a * 2
        b.sum().backward()
        """
    )
    assert len(record.backward_calls) == 1
    a = next(row.tensor for row in record.bindings if row.name == "a")
    assert [row.grad for row in record.snapshots if row.tensor == a][-1] == "present"


def test_a_backward_call_through_a_jagged_tensor_is_recorded() -> None:
    record = run(
        """\
        import torch
        odd = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged, requires_grad=True)
        twice = odd * 2
        twice.values().sum().backward()
        a = torch.ones(3, requires_grad=True)
        (a * 2).sum().backward()
        """
    )
    assert [call.outcome for call in record.backward_calls] == ["finished", "finished"]
    odd = next(row for row in record.tensors if row.special == "nested")
    assert (odd.shape, odd.stride) == (None, None)
