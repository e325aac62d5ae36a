"""Values with a graph that a statement replaced by its next value before a backward call took the last one."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.syntax import site_of, statement, tree_of
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Binding, Record

_SCOPES: Final = (ast.For, ast.While, ast.FunctionDef, ast.AsyncFunctionDef)


class Replaced(NamedTuple):
    """A statement that binds one name several times between two backward calls.

    Attributes:
        name: The name that the statement binds.
        times: How often at most the statement bound it before one backward call.
        tensors: The values that no backward call reached.
    """

    name: str
    times: int
    tensors: frozenset[int]


@table
def replaced_values(record: Record) -> Mapping[int, Replaced]:
    """Return the statements of which each backward call reaches only the last value, by statement."""
    index = lookup(record)
    walked = frozenset(node for reach in reaches(record).values() for node in reach.met)
    turns: defaultdict[tuple[int, str, int], list[Binding]] = defaultdict(list)
    for site, rows in tracked_bindings(record).items():
        for row in rows:
            turns[site, row.name, turn_of(record, row)].append(row)
    found: dict[int, Replaced] = {}
    for (site, name, _turn), rows in turns.items():
        lost = {row.tensor for row in rows if index.node_of[row.tensor].node not in walked}
        if index.node_of[rows[-1].tensor].node in walked and lost and lost == {row.tensor for row in rows[:-1]}:
            known = found.get(site, Replaced(name, 0, frozenset()))
            found[site] = Replaced(name, max(known.times, len(rows)), known.tensors | lost)
    return found


def is_chosen(record: Record, site: int) -> bool:
    """Return whether the program may choose among the values: its loop compares the name, or hands the tensor on.

    What is only read of the tensor, as in `losses.append(loss.item())`, chooses nothing.
    """
    name, where = replaced_values(record)[site].name, site_of(record, site)
    tree, node = tree_of(record, where), statement(record, where)
    if tree is None or node is None:
        return True
    scope = next((part for part in tree.ancestors(node) if isinstance(part, _SCOPES)), tree.module)
    for part in ast.walk(scope):
        if isinstance(part, ast.Name | ast.Attribute) and isinstance(part.ctx, ast.Load) and ast.unparse(part) == name:
            around = list(tree.ancestors(part))
            if not isinstance(around[0], ast.Attribute) or any(isinstance(outer, ast.Compare) for outer in around):
                return True
    return False


@table
def tracked_bindings(record: Record) -> Mapping[int, list[Binding]]:
    """Return the bindings to tensors that have a graph, by statement."""
    found: defaultdict[int, list[Binding]] = defaultdict(list)
    for row in record.bindings:
        if row.tensor in lookup(record).node_of:
            found[row.site].append(row)
    return found


def turn_of(record: Record, binding: Binding) -> int:
    """Return how many backward calls had begun before a binding."""
    return bisect_left(record.backward_calls, binding.moment, key=lambda call: call.moment_before)
