"""At a statement that ran often not everything is read of tensors it does not name: no line is blamed for another's."""

from __future__ import annotations

import pytest

from backprobe.capture import Options, run_source
from backprobe.record import Record

PROGRAM = """\
from collections import deque
import torch
w = torch.zeros(2, requires_grad=True)
held = deque([w])
def turn(i):
    step = i + 1
    print(end="")
    {change}
    print(end="")
    return w * step
for i in range(60):
    turn(i)
"""
CHANGE_LINE = 8


def run(change: str) -> Record:
    record = run_source(PROGRAM.replace("{change}", change), options=Options(seed=0))
    assert record.end is not None
    assert record.end.own_errors == 0, record.end.own_error
    return record


def line_of(record: Record, site: int | None) -> int | None:
    return None if site is None else record.sites[site].line


def test_a_write_by_an_alias_that_no_name_holds_is_found_at_its_line_however_often_it_ran() -> None:
    record = run("held[0].detach().add_(1)")
    found = [(line_of(record, row.site), row.done_by) for row in record.inplace_events]
    assert found == [(CHANGE_LINE, "statement")] * 60


@pytest.mark.parametrize(
    ("change", "kinds"),
    [
        ("held[0].backward(torch.ones(2)) or setattr(held[0], 'grad', None)", {"populate", "set-none"}),
        ("setattr(held[0], 'grad', torch.ones(2))", {"assigned"}),
    ],
)
def test_a_gradient_that_is_set_without_naming_its_owner_is_found_at_its_line(change: str, kinds: set[str]) -> None:
    record = run(change)
    assert {row.kind for row in record.leaf_grads} == kinds
    assert {line_of(record, row.site) for row in record.leaf_grads} == {CHANGE_LINE}
    assert len(record.leaf_grads) == 60 * len(kinds)


def test_a_write_without_a_new_version_that_is_found_late_is_put_down_to_no_line() -> None:
    record = run("held[0].data.add_(1)")
    found = [(line_of(record, row.site), row.done_by) for row in record.inplace_events]
    assert set(found) == {(CHANGE_LINE, "statement"), (None, "unknown")}
    assert found[:20] == [(CHANGE_LINE, "statement")] * 20
