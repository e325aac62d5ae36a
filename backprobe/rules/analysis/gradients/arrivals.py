"""Which gradients were zero: what came to a node in a backward call, and what ever came to the leaves behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Edge, NodePass, Record, Statistics


def is_zero(measured: Statistics | None) -> bool:
    """Every element was looked at and is 0; False where nothing was measured."""
    return measured is not None and measured.kind == "exact" and 0 < measured.counted == measured.zeros


def is_nonzero(measured: Statistics | None) -> bool:
    """Some element that was looked at is not 0."""
    return measured is not None and measured.zeros < measured.counted


def came_to(record: Record, node: int) -> list[NodePass]:
    """The passes of a node that brought it a gradient, call by call."""
    return [row for row in lookup(record).passes_of_node[node] if not row.hole]


def sent_along(record: Record, edge: Edge, call: int) -> Statistics | None:
    """The gradient that came, in a call, to where an edge leads: of all its senders together. None: not measured."""
    if edge.to_node is None:
        return None
    rows = lookup(record).passes_of_node[edge.to_node]
    found = (row.grad_output for row in rows if row.call == call and row.output_nr == edge.input_nr)
    return next(found, None)


@table
def came_to_leaves(record: Record) -> dict[int, list[NodePass]]:
    """The passes that brought each leaf a gradient, in order of the calls: torch may make its accumulator anew."""
    found: dict[int, list[NodePass]] = {}
    for node in record.nodes:
        if node.variable is not None:
            found.setdefault(node.variable, []).extend(came_to(record, node.node))
    return {leaf: sorted(rows, key=lambda row: row.call) for leaf, rows in found.items()}


@table
def always_zero(record: Record) -> frozenset[int]:
    """The leaves that backward calls brought gradients to, all of them zero in every element."""
    arrived = came_to_leaves(record).items()
    return frozenset(leaf for leaf, rows in arrived if rows and all(is_zero(row.grad_output) for row in rows))
