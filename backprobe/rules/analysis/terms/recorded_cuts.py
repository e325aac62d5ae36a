"""Where a term of a loss was cut off, read from the operations that made it: for ways that the source hides.

A value that goes through a dict, an unpacked call or a callback is not followed in the source; what went into each
operation is in the record all the same.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.breaks import Break, site_around
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.break_syntax import KINDS, Ending, ending_at
from backprobe.rules.analysis.source.expression_places import expression_of
from backprobe.rules.analysis.tensors.parents import made_by, operations_by_number
from backprobe.rules.analysis.terms.term_sources import trained_by
from backprobe.rules.analysis.training.steps import state_at

if TYPE_CHECKING:
    from backprobe.record import Operation, Record
    from backprobe.rules.analysis.terms.terms import Term

_MOST: Final = 200
"""Operations that one term is followed through."""

_CUTS: Final = frozenset({"detach", "numpy", "item", "rebuild", "non-differentiable"})


@dataclass(frozen=True, slots=True)
class _Place:
    ending: Ending
    inner: ast.expr
    source: int
    leaves: frozenset[int]


def recorded_cut(record: Record, rows: list[Term], held: frozenset[int]) -> Break | None:
    """The cut that the values of a term without a history came through; None: none is known."""
    if any(one.is_tracked for one in rows):
        return None
    places = list(_places(record, rows[0], held))
    if not places or any(one.ending.kind not in _CUTS for one in places):
        return None
    best = min(
        places, key=lambda one: (KINDS.index(one.ending.kind), one.ending.node.lineno, one.ending.node.col_offset)
    )
    site = site_around(record, best.source, best.ending.node)
    if site is None or rows[0].call.site is None:
        return None
    others = {one.ending.node: one.ending for one in places if one.ending.kind == best.ending.kind}
    others.pop(best.ending.node)
    return Break(
        ending=best.ending,
        source=best.source,
        others=tuple(others.values()),
        lost=ast.unparse(best.inner),
        site=site,
        leaves=tuple(sorted(set[int]().union(*(one.leaves for one in places)))),
        root=rows[0].call.site,
        calls=tuple(one.call.call for one in rows),
        raised=None,
        moment=min(one.call.moment_before for one in rows),
        is_partial=True,
    )


def _places(record: Record, term: Term, held: frozenset[int]) -> Iterator[_Place]:
    """The operations without a history that took in something that what is stepped went into."""
    known, made = operations_by_number(record), made_by(record)
    start = term.operation or (None if term.tensor is None else made.get(term.tensor))
    waiting = [] if start is None else [start]
    seen: set[int] = set()
    while waiting and len(seen) < _MOST:
        row = waiting.pop()
        if row.operation in seen:
            continue
        seen.add(row.operation)
        for given in (*row.operands, *(known[one] for one in row.inner if one in known)):
            if not _is_tracked(record, given, row):
                further = made.get(given) if isinstance(given, int) else given
                waiting += [] if further is None else [further]
                continue
            leaves = trained_by(record, given) & held
            place = _ending(record, row) if leaves else None
            if place is not None:
                yield _Place(*place, lookup(record).sites[row.statement].source, leaves)


def _is_tracked(record: Record, given: int | Operation, row: Operation) -> bool:
    if not isinstance(given, int):
        return bool(given.requires_grad)
    state = state_at(record, given, row.moment or 0)
    return state is not None and state.requires_grad


def _ending(record: Record, row: Operation) -> tuple[Ending, ast.expr] | None:
    """What the expression of an operation does to the history of what it takes in, and that."""
    node = expression_of(record, row)
    if isinstance(node, ast.Attribute):
        ending = ending_at(node, node.value)
        return None if ending is None else (ending, node.value)
    if not isinstance(node, ast.Call):
        return None
    method = node.func if isinstance(node.func, ast.Attribute) else None
    ending = None if method is None else ending_at(method, method.value)
    if ending is not None and method is not None:
        return replace(ending, node=node), method.value
    for part in node.args:
        ending = ending_at(node, part)
        if ending is not None:
            return ending, part
    return None
