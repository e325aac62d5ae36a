"""The divergence of a diagonal Gaussian from the standard one, as far as sums of the graph show it.

-0.5 * (1 + s - m ** 2 - s.exp())     # s is a log-variance: it stands by itself and under one `exp`
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.walks import op, op_of, walked
from backprobe.rules.analysis.rows.lookup import lookup, nodes_like
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Node, Record

_SUMS: Final = frozenset({"Add", "Sub", "Rsub", "Neg"})
_MOST: Final = 12
"""Nodes of one sum."""

_Place = tuple[int, int]
"""A node, and which of its outputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianTerm:
    """One such sum that a backward call walked.

    Attributes:
        scale: What stands by itself and under `exp`: a node and its output. exponential, square: the nodes of both.
        top: The node of the whole sum.
    """

    scale: _Place
    exponential: Node
    square: Node
    top: Node


@table
def users(record: Record) -> dict[int, list[int]]:
    """The nodes that took what a node gave, by node."""
    found: dict[int, list[int]] = {}
    for edge in record.edges:
        if edge.to_node is not None:
            found.setdefault(edge.to_node, []).append(edge.node)
    return found


@table
def gaussian_terms(record: Record) -> tuple[GaussianTerm, ...]:
    """All of them."""
    return tuple(_found(record))


def _found(record: Record) -> Iterator[GaussianTerm]:
    index, known = lookup(record), walked(record)
    for one in nodes_like(record, lambda kind: op_of(kind) == "Exp"):
        edges = index.edges_of[one.node]
        scale = (edges[0].to_node, edges[0].input_nr) if edges else None
        if one.node not in known or scale is None or scale[0] is None or len(users(record).get(one.node, ())) != 1:
            continue
        top = _top(record, one.node)
        places = list(_leaves(record, top))
        squares = [place[0] for place in places if op(index.nodes[place[0]]) in ("Pow", "Square", "Mul")]
        if top != one.node and len(squares) == 1 and scale in places:
            square, whole = index.nodes[squares[0]], index.nodes[top]
            yield GaussianTerm(scale=(scale[0], scale[1]), exponential=one, square=square, top=whole)


def _top(record: Record, node: int) -> int:
    """The sum that a node is a part of, as far up as nothing else takes it."""
    for _turn in range(_MOST):
        above = users(record).get(node, ())
        if len(above) != 1 or op(lookup(record).nodes[above[0]]) not in _SUMS:
            break
        node = above[0]
    return node


def _leaves(record: Record, top: int) -> Iterator[_Place]:
    """What a sum is the sum of."""
    waiting, seen = [top], 0
    while waiting and seen < _MOST:
        seen += 1
        for edge in lookup(record).edges_of[waiting.pop()]:
            if edge.to_node is None:
                continue
            if op(lookup(record).nodes[edge.to_node]) in _SUMS:
                waiting.append(edge.to_node)
            else:
                yield edge.to_node, edge.input_nr


def signs(record: Record, node: int) -> set[int]:
    """The signs of the gradients that reached what a node gave; 0 stands for both in one gradient."""
    found: set[int] = set()
    for one in lookup(record).passes_of_node[node]:
        stats = one.grad_output
        if stats is not None and stats.min is not None and stats.max is not None and stats.norm:
            found.add(1 if stats.min >= 0 else -1 if stats.max <= 0 else 0)
    return found
