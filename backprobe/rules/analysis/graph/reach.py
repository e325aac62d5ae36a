"""Which leaves and nodes each backward call met, ran and freed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Record, TensorNode


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What one backward call met.

    Attributes:
        met: Nodes that its walk saw; ran: of those, executed; freed: whose saved tensors it freed.
        leaves: Leaves whose AccumulateGrad it met.
    """

    call: int
    met: frozenset[int]
    ran: frozenset[int]
    freed: frozenset[int]
    leaves: frozenset[int]


@table
def reaches(record: Record) -> dict[int, Reach]:
    """What each backward call met, by call. At the tier `state` nothing is walked and all sets are empty."""
    index = lookup(record)
    variable_of = {row.node: row.variable for row in record.nodes if row.variable is not None}
    answers: dict[int, Reach] = {}
    for call in index.calls:
        passes = index.passes_of_call[call]
        met = frozenset(row.node for row in passes)
        answers[call] = Reach(
            call=call,
            met=met,
            ran=frozenset(row.node for row in passes if row.position is not None),
            freed=frozenset(row.node for row in passes if row.freed),
            leaves=frozenset(variable_of[node] for node in met & variable_of.keys()),
        )
    return answers


def arrived_at(record: Record, call: BackwardCall, made: TensorNode, *, ran: bool = False) -> bool:
    """A call's gradient came to this one output of a node: the others of an `unbind` are met with a hole.

    Args:
        ran: The node must have been executed too.
    """
    rows = (row for row in lookup(record).passes_of_node[made.node] if row.call == call.call)
    return any(row.output_nr == made.output_nr and not row.hole and not (ran and row.position is None) for row in rows)


def between(record: Record, start: int, target: int) -> frozenset[int]:
    """The nodes on the ways from one node to another along `next_functions`, both ends included; empty if none."""
    index = lookup(record)
    down = _closure(start, lambda node: [e.to_node for e in index.edges_of[node] if e.to_node is not None])
    if target not in down:
        return frozenset()
    above = _consumers(record)
    return down & _closure(target, lambda node: above.get(node, []))


def above(record: Record, nodes: Iterable[int], within: frozenset[int]) -> frozenset[int]:
    """These nodes and all that lead to one of them along `next_functions`, as far as they lie within a set."""
    consumers = _consumers(record)
    seen = set(nodes) & within
    waiting = deque(seen)
    while waiting:
        for node in consumers.get(waiting.popleft(), ()):
            if node in within and node not in seen:
                seen.add(node)
                waiting.append(node)
    return frozenset(seen)


def _closure(start: int, following: Callable[[int], Iterable[int]]) -> frozenset[int]:
    seen, waiting = {start}, deque([start])
    while waiting:
        for node in following(waiting.popleft()):
            if node not in seen:
                seen.add(node)
                waiting.append(node)
    return frozenset(seen)


@table
def _consumers(record: Record) -> dict[int, list[int]]:
    above: dict[int, list[int]] = {}
    for edge in record.edges:
        if edge.to_node is not None:
            above.setdefault(edge.to_node, []).append(edge.node)
    return above


def leaves_behind(record: Record, node: int) -> frozenset[int]:
    """The leaves that a gradient arriving at a node goes on to, along `next_functions`."""
    index = lookup(record)
    down = _closure(node, lambda one: [edge.to_node for edge in index.edges_of[one] if edge.to_node is not None])
    variables = (index.nodes[one].variable for one in down)
    return frozenset(variable for variable in variables if variable is not None)


def leaves_past(record: Record, call: int, avoided: frozenset[int]) -> frozenset[int]:
    """The leaves that a call reaches from its roots on a way without these nodes."""
    index, met = lookup(record), reaches(record)[call].met
    below = {node: [edge.to_node for edge in index.edges_of[node]] for node in met}
    within = met - avoided
    found: frozenset[int] = frozenset()
    for root in within - {node for nodes in below.values() for node in nodes}:
        found |= _closure(root, lambda node: [inner for inner in below[node] if inner in within])
    variables = (index.nodes[node].variable for node in found)
    return frozenset(variable for variable in variables if variable is not None)


@table
def leading_to(record: Record) -> dict[tuple[int, int], list[int]]:
    """The nodes that hand a gradient to an output, by its node and number."""
    found: dict[tuple[int, int], list[int]] = {}
    for edge in record.edges:
        if edge.to_node is not None:
            found.setdefault((edge.to_node, edge.input_nr), []).append(edge.node)
    return found


@table
def first_numbers(record: Record) -> dict[int, int]:
    """The first number of a node that has several: a long run lets go of it and meets it again.

    It is known by its place in its thread's order, which no other node has.
    """
    first: dict[tuple[int, int, str], int] = {}
    again: dict[int, int] = {}
    for row in record.nodes:
        if row.seq is None or row.variable is not None or row.born_in != "forward":
            continue
        number = first.setdefault((row.thread, row.seq, row.type), row.node)
        if number != row.node:
            again[row.node] = number
    return again


def numbered(nodes: frozenset[int], known: dict[int, int]) -> frozenset[int]:
    """The nodes by their first numbers."""
    return frozenset(known.get(node, node) for node in nodes) if known else nodes
