"""What a record tells of a box of a graph beside its nodes: gradients that came to them, and leaves that lie in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.show.drawing.box_badges import Leaf
from backprobe.show.tensor_table import name_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backprobe.record import Record


def leaves_of(record: Record, tensors: Iterable[int | None]) -> dict[int, Leaf]:
    """Find the leaves among some nodes, by tensor. None in `tensors`: a node that adds to none."""
    index = lookup(record)
    found: dict[int, Leaf] = {}
    for tensor in tensors:
        if tensor is None:
            continue
        history = index.snapshots_of[tensor]
        called = index.tensors[tensor].fqn or name_of(index, tensor) or f"tensor {tensor}"
        found[tensor] = Leaf(tensor=tensor, name=called, grad=history[-1].grad if history else "not-read")
    return found


def norms_of(record: Record, call: int) -> dict[int, tuple[float | None, bool]]:
    """Of each node the largest finite norm that came to it in the call, and whether NaN or Inf did."""
    found: dict[int, tuple[float | None, bool]] = {}
    for row in lookup(record).passes_of_call[call]:
        told = row.grad_output
        if told is None:
            continue
        before, was_bad = found.get(row.node, (None, False))
        bad = bool(told.nan or told.inf)
        known = [value for value in (before, None if bad else told.norm) if value is not None]
        found[row.node] = (max(known, default=None), bad or was_bad)
    return found
