"""Losses that a root is the sum of and that a trained leaf weighs: `exp(-s) * loss`, `softplus(m) * violation`.

1. From the root down through sums and means, to products of two tracked values: one is a loss that other leaves train,
   the other a positive function of one leaf and nothing else.
2. A layer's own output is no loss: what it is multiplied by is a gain.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.reach import leaves_behind, reaches
from backprobe.rules.analysis.graph.walks import RESHAPES, node_of, op, operands
from backprobe.rules.analysis.rows.lookup import lookup

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Node, Record

_CALLS: Final = 6
"""Backward calls of one statement whose graphs are looked at."""
MOST: Final = 16
"""Weights in one leaf."""
_DEEPEST: Final = 8
"""Nodes between a weight and its leaf."""
_NODES: Final = 400
"""Nodes of a sum that are gone through."""

_SUMS: Final = frozenset({"Add", "Sub", "Rsub", "Neg", "Sum", "Mean", "Stack", "Cat"}) | RESHAPES
_LINEAR: Final = frozenset({"Neg", "Mul", "Div"}) | RESHAPES
_POSITIVE: Final = frozenset({"Exp", "Softplus", "Sigmoid", "Abs", "Pow", "Relu", "Reciprocal"})
_SCORES: Final = frozenset({"Addmm", "Mm", "Mv", "Bmm", "Dot", "Convolution"})
"""A layer's own output: what it is multiplied by is a gain, and the product a score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighted:
    """A product of a loss and a weight. way: the nodes from the weight down to its leaf."""

    call: BackwardCall
    product: Node
    leaf: int
    other: int
    way: tuple[int, ...]


def first_calls(record: Record) -> list[BackwardCall]:
    """The first calls of each statement that fill gradients."""
    seen: defaultdict[int | None, int] = defaultdict(int)
    found: list[BackwardCall] = []
    for call in record.backward_calls:
        if call.accumulate_grad and call.outcome == "finished" and len(call.roots) == 1:
            seen[call.site] += 1
            found += [call] if seen[call.site] <= _CALLS else []
    return found


def _root(record: Record, call: BackwardCall) -> int | None:
    """The node of the root; of one without a row, the one that ran first."""
    node = node_of(record, call.roots[0].tensor)
    if node is None:
        rows = (row for row in lookup(record).passes_of_call[call.call] if row.position is not None)
        first = min(rows, key=lambda row: row.position or 0, default=None)
        node = None if first is None else first.node
    return node


def weighted_losses(record: Record, call: BackwardCall) -> Iterator[Weighted]:
    """The products that a root is the sum of, with a weight that one leaf gives."""
    root, index = _root(record, call), lookup(record)
    waiting = [] if root is None else [root]
    seen = set(waiting)
    while waiting and len(seen) <= _NODES:
        node = index.nodes[waiting.pop()]
        sides = operands(record, node.node)
        given = [one for one in sides if one is not None]
        if op(node) in ("Mul", "Div") and len(given) == 2:
            yield from _weights(record, call, node, given)
        elif op(node) in _SUMS or (op(node) in ("Mul", "Div") and len(given) == 1):
            waiting += [one for one in given if one not in seen]
            seen.update(given)


def _weights(record: Record, call: BackwardCall, product: Node, given: list[int]) -> Iterator[Weighted]:
    if not product.outputs or _numel(product) > MOST:
        return
    for at, other in ((0, given[1]), (1, given[0])):
        if at == 0 and op(product) == "Div":
            continue  # the weight is what is divided by
        way = _way(record, given[at])
        leaf = None if way is None else lookup(record).nodes[way[-1]].variable
        if way is None or leaf is None:
            continue
        is_positive = op(product) == "Div" or any(op(lookup(record).nodes[one]) in _POSITIVE for one in way)
        if is_positive and _is_loss(record, product, other) and leaves_behind(record, other) - {leaf}:
            yield Weighted(call=call, product=product, leaf=leaf, other=other, way=way)
            return


def _numel(node: Node) -> int:
    count = 1
    for size in node.outputs[0].shape:
        count *= size
    return count


def _way(record: Record, node: int) -> tuple[int, ...] | None:
    """From a weight down to its leaf, through functions of one thing; None where something else goes in."""
    way = [node]
    while lookup(record).nodes[way[-1]].variable is None:
        row = lookup(record).nodes[way[-1]]
        given = {one for one in operands(record, row.node) if one is not None}
        if len(given) != 1 or len(way) > _DEEPEST or op(row) not in _LINEAR | _POSITIVE:
            return None
        way.append(given.pop())
    return tuple(way)


def _is_loss(record: Record, product: Node, other: int) -> bool:
    """One number for each weight, and no layer's own output."""
    made = reduced(record, other)
    if op(lookup(record).nodes[made]) in _SCORES:
        return False
    return _numel(product) == 1 or op(lookup(record).nodes[other]) in ("Stack", "Cat")


def reduced(record: Record, node: int) -> int:
    """The node behind means, sums and views."""
    for _ in range(_DEEPEST):
        given = [one for one in operands(record, node) if one is not None]
        if op(lookup(record).nodes[node]) not in {"Sum", "Mean", "Neg"} | RESHAPES or len(given) != 1:
            break
        node = given[0]
    return node


def is_only_weight(record: Record, call: BackwardCall, leaf: int, ways: list[Weighted]) -> bool:
    """Nothing else that the call met takes the leaf in, nor what is made of it on the way."""
    inside = {node for one in ways for node in one.way}
    allowed = inside | {one.product.node for one in ways}
    index = lookup(record)
    inside |= {node for node in reaches(record)[call.call].met if index.nodes[node].variable == leaf}
    return all(
        node in allowed or not any(one in inside for one in operands(record, node))
        for node in reaches(record)[call.call].met
    )
