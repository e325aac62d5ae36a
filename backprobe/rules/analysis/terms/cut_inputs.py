"""Whether what the record has of an expression that ends a way agrees with it: something tracked went in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expression_places import operations_at, operations_of
from backprobe.rules.analysis.tensors.parents import operations_by_number
from backprobe.rules.analysis.training.steps import state_at

if TYPE_CHECKING:
    from backprobe.record import Operation, Record
    from backprobe.rules.analysis.source.data_flow_steps import Arrival


def is_cut(record: Record, way: Arrival) -> bool:
    """What the record has of the expression that ends the way does not contradict: something tracked went in."""
    ending = way.step.ending
    rows = [] if ending is None or ending.kind == "no-grad" else operations_of(record, ending.node)
    return not rows or any(_takes_tracked(record, row) for row in rows)


def _takes_tracked(record: Record, row: Operation) -> bool:
    known = operations_by_number(record)
    if any(known[one].requires_grad or known[one].result == "tensors" for one in row.inner if one in known):
        return True
    if not row.complete or (row.result in ("number", "array") and not row.operands):
        return True
    states = (state_at(record, one, row.moment or 0) for one in row.operands)
    tracked = any(state is not None and state.requires_grad for state in states)
    return tracked or _is_drawn(row) or any(_is_place(record, one) for one in row.operands)


def _is_place(record: Record, tensor: int) -> bool:
    """Whole numbers that came beside tracked values, as the second result of `topk`, `max` or `sort` does."""
    bound = lookup(record).bindings_of[tensor]
    if not bound or not lookup(record).tensors[tensor].dtype.startswith(("int", "uint")):
        return False
    made = operations_at(record).get(bound[0].site, ())
    return any(
        one.is_value
        and one.result == "tensors"
        and any((was := state_at(record, given, one.moment or 0)) and was.requires_grad for given in one.operands)
        for one in made
    )


def _is_drawn(row: Operation) -> bool:
    """A method of a distribution: that is no tensor, what it holds is not seen to go in."""
    return row.function.endswith((".sample", ".sample_n"))
