"""Values with a graph that a statement replaced by its next value before a backward call took the last one."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Binding, Record


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
