"""The comparison notices a record that is wrong in one place; each kind of fact is broken once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from backprobe.record import Record
from tests.oracle.campaign import found_in, recorded
from tests.oracle.compare import differences, kinds
from tests.oracle.truth import truth

SOURCE = """\
import torch
def double(t):
    u = t * 2
    return u + 1
a = torch.tensor([1.0, 2.0], requires_grad=True)
b = torch.ones(2)
b.add_(1)
v = b[0:1]
net = torch.nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
c = double(a) * b
c.retain_grad()
loss = net(c).sum()
loss.backward()
opt.step()
opt.zero_grad()
c = a.exp()
held = c * 3
(a * a).sum().backward()
with torch.no_grad():
    c = a + 1
b = 1 / 0
"""

Wrong = Callable[[Record], Record]


def _followed(record: Record) -> set[int]:
    """The tensors that the truth can name."""
    return {row.tensor for row in record.bindings} | {row.tensor for row in record.tensors if row.fqn is not None}


def change_last_row(table: str, which: Callable[[Any], bool] = lambda _: True, **changes: Any) -> Wrong:
    """The last such row of a table has other values."""

    def wrong(record: Record) -> Record:
        rows, named = list(getattr(record, table)), _followed(record)
        at = max(i for i, row in enumerate(rows) if getattr(row, "tensor", 0) in {*named, None} and which(row))
        for field, value in changes.items():
            new = value(getattr(rows[at], field)) if callable(value) else value
            assert new != getattr(rows[at], field)
            rows[at] = msgspec.structs.replace(rows[at], **{field: new})
        return msgspec.structs.replace(record, **{table: tuple(rows)})

    return wrong


def drop_last_row(table: str, which: Callable[[Any], bool] = lambda _: True) -> Wrong:
    """The last such row of a table is missing."""

    def wrong(record: Record) -> Record:
        rows, named = list(getattr(record, table)), _followed(record)
        del rows[max(i for i, row in enumerate(rows) if getattr(row, "tensor", 0) in {*named, None} and which(row))]
        return msgspec.structs.replace(record, **{table: tuple(rows)})

    return wrong


def flipped(value: bool) -> bool:
    return not value


WRONG: dict[str, tuple[str, Wrong]] = {
    "a flag": ("state", change_last_row("snapshots", lambda row: row.requires_grad, requires_grad=flipped)),
    "is_leaf": ("state", change_last_row("snapshots", lambda row: row.tensor == 0, is_leaf=flipped)),
    "retains_grad": ("state", change_last_row("snapshots", lambda row: row.retains_grad, retains_grad=flipped)),
    "a version": ("state", change_last_row("snapshots", lambda row: row.version == 1, version=2)),
    "a gradient's presence": ("state", change_last_row("snapshots", lambda row: row.grad == "present", grad="none")),
    "a node's name": (
        "grad_fn",
        change_last_row("snapshots", lambda row: row.grad_fn == "ExpBackward0", grad_fn="AddBackward0"),
    ),
    "an element": (
        "elements",
        change_last_row("small_values", lambda row: row.of == "value" and row.tensor == 0, elements=bytes(8)),
    ),
    "an element of a gradient": (
        "elements",
        change_last_row("small_values", lambda row: row.of == "grad", elements=bytes(8)),
    ),
    "a norm": (
        "norm",
        change_last_row(
            "snapshots",
            lambda row: row.value is not None and row.tensor == 0,
            value=lambda value: msgspec.structs.replace(value, norm=2.25),
        ),
    ),
    "an in-place change": ("in-place", drop_last_row("inplace_events", lambda row: row.done_by == "statement")),
    "an optimizer's change": (
        "in-place",
        change_last_row("inplace_events", lambda row: row.done_by == "optimizer", done_by="statement"),
    ),
    "the line of an in-place change": (
        "in-place line",
        change_last_row("inplace_events", lambda row: row.done_by == "statement", site=lambda site: site - 1),
    ),
    "the line of a statement": ("moments", change_last_row("sites", lambda row: row.line == 17, line=18, end_line=18)),
    "a moment": ("moments", drop_last_row("moments", lambda row: row.kind == "before-backward")),
    "a death": (
        "death",
        change_last_row("tensors", lambda row: row.died is not None and row.created_by == "op", died=None),
    ),
    "the moment of a death": (
        "death",
        change_last_row("tensors", lambda row: row.died is not None and row.created_by == "op", died=2),
    ),
    "a death that was none": ("death", change_last_row("tensors", lambda row: row.tensor == 0, died=3)),
    "a binding": ("name", drop_last_row("bindings", lambda row: row.name == "held")),
    "a binding's tensor": ("identity", change_last_row("bindings", lambda row: row.name == "held", tensor=0)),
    "a leaf gradient": ("leaf grad", drop_last_row("leaf_grads", lambda row: row.kind == "set-none")),
    "what happened to a leaf gradient": (
        "leaf grad",
        change_last_row("leaf_grads", lambda row: row.kind == "populate", kind="accumulate"),
    ),
    "a freed node": ("call freed", change_last_row("node_passes", lambda row: row.freed, freed=False)),
    "a node of a call": ("call met", change_last_row("backward_calls", nodes_met=lambda count: count + 1)),
    "retain_graph": ("call retain_graph", change_last_row("backward_calls", retain_graph=True)),
    "the line of a call": ("call line", change_last_row("backward_calls", site=lambda site: site + 1)),
    "a call": ("calls", drop_last_row("backward_calls")),
    "a module's call": ("modules", drop_last_row("module_calls")),
    "an optimizer's step": ("optimizer", drop_last_row("optimizer_events", lambda row: row.kind == "step")),
    "a grad mode": ("mode", change_last_row("moments", lambda row: not row.grad_mode, grad_mode=True)),
    "what a root holds": ("retention", change_last_row("retentions", lambda row: row.name == "held", state="freed")),
    "a view's base": ("base", change_last_row("tensors", lambda row: row.view_of is not None, view_of=None)),
    "shared memory": ("storage", change_last_row("tensors", lambda row: row.view_of is not None, storage=99)),
    "the node of a tensor": (
        "origin",
        change_last_row("tensors", lambda row: row.created_how == "ExpBackward0", created_how=".exp"),
    ),
    "the line of a node": (
        "node line",
        change_last_row("nodes", lambda row: row.type == "AddmmBackward0", site=lambda site: site - 1),
    ),
    "what reached a node": (
        "arrived",
        change_last_row(
            "node_passes",
            lambda row: row.grad_output is not None and row.position == 0,
            grad_output=lambda value: msgspec.structs.replace(value, norm=2.25),
        ),
    ),
    "the exception": ("end", change_last_row("raised", message="another")),
}


def test_the_record_of_the_program_is_right() -> None:
    assert found_in(SOURCE, "full") == []


@pytest.mark.parametrize("what", WRONG)
def test_the_comparison_notices_a_wrong(what: str) -> None:
    kind, wrong = WRONG[what]
    broken = wrong(recorded(SOURCE, "full"))
    found = differences(broken, truth(SOURCE), SOURCE, truth(SOURCE, traced=True))
    assert kind in set(kinds(found)), found
