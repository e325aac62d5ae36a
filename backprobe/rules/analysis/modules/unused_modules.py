"""Modules whose parameters an optimizer holds and no graph of a backward call ever led to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.modules.module_tree import parameters_below
from backprobe.rules.analysis.training.trained_parameters import in_optimizers, required_grad
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Record


def never_met(record: Record, key: str) -> list[int]:
    """The parameters of a module and of what it contains; empty unless that is so of every one of them."""
    held = in_optimizers(record)
    tensors = parameters_below(record, key)
    wanted = all(one in held and one not in _met(record) and required_grad(record, one) for one in tensors)
    return tensors if wanted else []


@table
def _met(record: Record) -> frozenset[int]:
    """The leaves that the graph of some backward call led to, or whose `.grad` the program assigned.

    A graph that only lives on at the end is not one.
    """
    assigned = {row.tensor for row in record.leaf_grads if row.kind == "assigned"}
    return frozenset(leaf for reach in reaches(record).values() for leaf in reach.leaves) | assigned
