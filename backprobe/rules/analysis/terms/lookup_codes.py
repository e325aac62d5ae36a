"""Codes that are looked up by `argmin` and handed on as they are: what chose them gets no gradient through them.

    index = torch.cdist(z, book.weight).argmin(1)
    decoder(book(index))                   # a straight-through estimator hands on z + (book(index) - z).detach()

Only where the table that is compared is the one that is looked up in, and a module takes the codes, reshaped or not.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.breaks import Break, breaks
from backprobe.rules.analysis.graph.reach import leaves_behind
from backprobe.rules.analysis.graph.walks import node_of, walked
from backprobe.rules.analysis.modules.module_sites import modules_by_number
from backprobe.rules.analysis.modules.training_modes import called_modules
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.break_syntax import Ending
from backprobe.rules.analysis.source.expression_places import expression_of
from backprobe.rules.analysis.source.syntax import site_of
from backprobe.rules.analysis.tensors.parents import made_by, operands_below
from backprobe.rules.analysis.terms.samples import takers
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Operation, Record

LEAST: Final = 2
"""Times that codes were looked up so: once may be a start value."""

_DEPTH: Final = 3
"""Statements that a comparison is followed back through."""

_RESHAPES: Final = frozenset(
    {"view", "view_as", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "transpose", "permute", "movedim",
     "swapaxes", "contiguous", "mT", "T", "moveaxis"}
)  # fmt: skip
"""Functions that give the same elements in another shape."""

_MOST: Final = 50
"""Operations that a result is followed into."""


@table
def code_cuts(record: Record) -> tuple[Break, ...]:
    """The calls of `argmin` whose codes go on without a straight-through estimator, in order."""
    told = {one.ending.node for one in breaks(record)}
    found: defaultdict[ast.expr, list[tuple[Operation, frozenset[int]]]] = defaultdict(list)
    for row in record.operations:
        node = expression_of(record, row) if row.function.rpartition(".")[2] == "argmin" else None
        if node is not None and node not in told and len(found[node]) < LEAST and _hands_on(record, row):
            found[node].append((row, _chosen_by(record, row)))
    cuts = (_cut(record, node, rows) for node, rows in found.items() if len(rows) >= LEAST)
    return tuple(one for one in cuts if one is not None)


def _compared(record: Record, chosen: Operation) -> set[int]:
    """The tensors that `argmin` compared, and those that they were computed from, a few statements back."""
    found, level = set[int](), set(operands_below(record)[chosen.operation])
    for _ in range(_DEPTH):
        found |= level
        made = (made_by(record).get(one) for one in level)
        level = {one for row in made if row is not None for one in operands_below(record)[row.operation]} - found
    return found


def _hands_on(record: Record, chosen: Operation) -> bool:
    """A module takes codes as they were looked up in the table that was compared."""
    compared = _compared(record, chosen)
    for looked_up in _takers_reshaped(record, chosen):
        if not compared & _tables(record, looked_up):
            continue
        for one in _takers_reshaped(record, looked_up):
            node = expression_of(record, one)
            if one.requires_grad and node in called_modules(record) and node is not expression_of(record, looked_up):
                return True
    return False


def _takers_reshaped(record: Record, made: Operation) -> Iterator[Operation]:
    """The operations that a result went into, also in another shape."""
    waiting, seen = [made], set[int]()
    while waiting and len(seen) < _MOST:
        for one in takers(record, waiting.pop()):
            if one.operation not in seen:
                seen.add(one.operation)
                waiting += [one] if one.function.rpartition(".")[2] in _RESHAPES else []
                yield one


def _tables(record: Record, looked_up: Operation) -> set[int]:
    """The tensors that an operation reads, and the parameters of the modules that it calls."""
    node = expression_of(record, looked_up)
    modules = called_modules(record).get(node, frozenset[int]()) if node is not None else frozenset[int]()
    rows = (row for number in modules for row in modules_by_number(record)[number].parameters)
    return {*looked_up.operands, *(row.tensor for row in rows if row.tensor is not None)}


def _chosen_by(record: Record, chosen: Operation) -> frozenset[int]:
    """The leaves behind what was compared that an optimizer holds, the table itself left out."""
    leaves: set[int] = set()
    compared = _compared(record, chosen)
    for one in compared:
        made = node_of(record, one)
        if made is not None and made in walked(record):
            leaves |= leaves_behind(record, made)
    return frozenset(leaves & in_optimizers(record).keys() - compared)


def _cut(record: Record, node: ast.expr, rows: list[tuple[Operation, frozenset[int]]]) -> Break | None:
    leaves = frozenset[int]().union(*(leaves for _row, leaves in rows))
    first = rows[0][0]
    calls = [call for row, _leaves in rows for call in _next_call(record, row)]
    if not leaves or not calls:
        return None
    site = site_of(record, first.statement)
    return Break(
        ending=Ending(kind="non-differentiable", node=node, how="`argmin`"),
        source=site.source,
        others=(),
        lost=ast.unparse(node),
        site=site.site,
        leaves=tuple(sorted(leaves)),
        root=lookup(record).calls[calls[0]].site,
        calls=tuple(dict.fromkeys(calls)),
        raised=None,
        moment=first.moment or 0,
        is_partial=True,
    )


def _next_call(record: Record, row: Operation) -> Iterator[int]:
    """The backward call that follows, if it stores gradients."""
    after = (one for one in record.backward_calls if one.moment_before > (row.moment or 0))
    yield from (one.call for one in list(after)[:1] if one.accumulate_grad)
