"""What the record has of the expression that ends a way: whether something tracked went in, and in which phase."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.breaks import site_around
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.break_syntax import KINDS
from backprobe.rules.analysis.source.expression_places import operations_at, operations_of
from backprobe.rules.analysis.source.syntax import site_of
from backprobe.rules.analysis.tensors.parents import operations_by_number
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Operation, Record
    from backprobe.rules.analysis.source.data_flow_steps import Arrival
    from backprobe.rules.analysis.terms.terms import Term


def is_cut(record: Record, way: Arrival) -> bool:
    """What the record has of the expression that ends the way does not contradict: something tracked went in."""
    ending = way.step.ending
    rows = [] if ending is None or ending.kind == "no-grad" else operations_of(record, ending.node)
    return not rows or any(_takes_tracked(record, row) for row in rows)


def blame_order(record: Record, way: Arrival, term: Term) -> tuple[bool, int, bool, int]:
    """Of several endings of a term the one behind the last walk of another loss: what came before is data by then.

    Of several of one kind the one in the function that makes the term: what comes from elsewhere may be data.
    """
    ending = way.step.ending
    if ending is None:
        return False, 0, False, 0
    site = site_around(record, way.step.ended_in, ending.node)
    elsewhere = site is None or site_of(record, site).function != site_of(record, term.site).function
    early = site is not None and _is_before_another_walk(record, site, term)
    return early, KINDS.index(ending.kind), ending.kind == "no-grad" and elsewhere, ending.node.lineno


def _is_before_another_walk(record: Record, site: int, term: Term) -> bool:
    """The last time that a statement ran before the term's backward call, one of another loss came in between."""
    moments = _moments(record).get(site, [])
    at = bisect_left(moments, term.call.moment_before)
    return at > 0 and any(
        moments[at - 1] < one.moment_before < term.call.moment_before
        for one in record.backward_calls
        if one.site != term.call.site
    )


@table
def _moments(record: Record) -> dict[int, list[int]]:
    """The moments of each statement, in order."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    for row in record.moments:
        if row.site is not None:
            found[row.site].append(row.moment)
    return dict(found)


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
