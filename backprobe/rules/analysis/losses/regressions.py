"""Regression losses with two tracked sides: torch's own functions, and squares or absolute values of a difference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.walks import all_behind_shapes, behind_shapes, node_of, op, op_of, operands, walked
from backprobe.rules.analysis.losses.loss_calls import loss_calls, tensor_given
from backprobe.rules.analysis.rows.lookup import lookup, nodes_like
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Record

_NAMES: Final = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
_MEASURES: Final = frozenset({"Pow", "Abs"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """One loss that a backward call walked. left, right: the nodes of its sides."""

    site: int
    left: int
    right: int


@table
def regressions(record: Record) -> tuple[Regression, ...]:
    """All of them whose two sides are tracked."""
    return tuple(_calls(record)) + tuple(_differences(record))


def _calls(record: Record) -> Iterator[Regression]:
    for call in loss_calls(record, *_NAMES):
        left, right = node_of(record, call.given), node_of(record, tensor_given(call.call, "target"))
        if left is not None and right is not None:
            yield Regression(site=call.site, left=left, right=right)


def _differences(record: Record) -> Iterator[Regression]:
    """`(a - b).pow(2)`, `(a - b) ** 2`, `(a - b).abs()`, `(a - b) * (a - b)`."""
    index = lookup(record)
    known = walked(record)
    for node in nodes_like(record, lambda kind: op_of(kind) in _MEASURES or op_of(kind) == "Mul"):
        if node.node not in known or node.site is None:
            continue
        inside = [behind_shapes(record, one) for one in operands(record, node.node)]
        squares = op(node) == "Mul" and len(inside) == 2 and inside[0] == inside[1]
        if not inside or inside[0] is None or not (op(node) in _MEASURES or squares):
            continue
        sides = operands(record, inside[0])
        if op(index.nodes[inside[0]]) == "Sub" and len(sides) == 2 and sides[0] is not None and sides[1] is not None:
            yield Regression(site=node.site, left=sides[0], right=sides[1])


@table
def regressed(record: Record) -> dict[int, int]:
    """The nodes that are a side of a regression loss, tracked or not on the other side, with its site."""
    index, found = lookup(record), dict[int, int]()
    for call in loss_calls(record, *_NAMES):
        for tensor in (call.given, tensor_given(call.call, "target")):
            found |= dict.fromkeys(all_behind_shapes(record, node_of(record, tensor)), call.site)
    known = walked(record)
    for node in nodes_like(record, lambda kind: op_of(kind) in _MEASURES):
        if node.node in known and node.site is not None:
            for one in operands(record, node.node):
                inner = behind_shapes(record, one)
                if inner is not None and op(index.nodes[inner]) == "Sub":
                    for side in operands(record, inner):
                        found |= dict.fromkeys(all_behind_shapes(record, side), node.site)
    return found
