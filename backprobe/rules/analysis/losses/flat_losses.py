"""Losses of generators that are flat where they are worst: what a critic is sure of sends back no gradient.

loss = logsigmoid(-critic(maker(noise))).mean()  # log(1 - D): minimised, it falls where the critic is fooled
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.arrivals import came_to, sent_along
from backprobe.rules.analysis.graph.reach import leaves_behind
from backprobe.rules.analysis.graph.walks import RESHAPES, op, op_of, operands
from backprobe.rules.analysis.modules.module_sites import calls_by_number
from backprobe.rules.analysis.modules.training_modes import parameters_in
from backprobe.rules.analysis.rows.lookup import lookup, nodes_like
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Node, Record, Statistics

FLAT: Final = 0.1
"""Part of its gradient that a loss sends on where it is flat: at a probability of one half it is 0.5."""
LEAST: Final = 6
"""Backward calls with that loss: fewer show no course."""
_MOST: Final = 60
"""Calls of one statement that are looked at."""

_WORST: Final = {"LogSigmoid": 1, "Softplus": -1, "BinaryCrossEntropyWithLogits": -1}
"""Functions, and the sign of the gradient that comes to them where they are flat at the end that is worst."""
_PASSED: Final = RESHAPES | {"Neg", "Mul", "Div"}


@dataclass(frozen=True, slots=True)
class FlatLoss:
    """A statement whose loss went flat: the function, the calls in which it was, and what was sent on in the middle."""

    site: int
    kind: str
    calls: tuple[BackwardCall, ...]
    sent: float


@table
def flat_losses(record: Record) -> tuple[FlatLoss, ...]:
    """All of them, one for each statement."""
    found: dict[tuple[int, str], list[tuple[BackwardCall, float]]] = {}
    for node in nodes_like(record, lambda kind: op_of(kind) in _WORST):
        rows = found.setdefault((node.site, op(node)), []) if node.site is not None else []
        if node.site is not None and len(rows) < _MOST:
            rows += _sent(record, node)
    return tuple(one for key, rows in found.items() for one in [_flat(*key, rows)] if one is not None)


def _flat(site: int, kind: str, rows: list[tuple[BackwardCall, float]]) -> FlatLoss | None:
    """In most calls of the second half hardly anything went on."""
    late = sorted(rows, key=lambda one: one[0].call)[len(rows) // 2 :]
    flat = [(call, part) for call, part in late if part < FLAT]
    if len(rows) < LEAST or 2 * len(flat) <= len(late):
        return None
    return FlatLoss(site, kind, tuple(call for call, _part in flat), median(part for _call, part in flat))


def _sent(record: Record, node: Node) -> Iterator[tuple[BackwardCall, float]]:
    """The calls that brought a loss the gradient of its bad end, with the part that it sent on to a critic's input."""
    edge = next((one for one in lookup(record).edges_of[node.node] if one.to_node is not None), None)
    for row in came_to(record, node.node):
        got, sent, sign = (
            row.grad_output,
            None if edge is None else sent_along(record, edge, row.call),
            _WORST[op(node)],
        )
        if got is None or got.min is None or got.max is None or sent is None:
            continue
        if min(sign * got.min, sign * got.max) > 0 and _judges(record, node):
            yield lookup(record).calls[row.call], _part(got, sent)


def _part(got: Statistics, sent: Statistics) -> float:
    """The part that went on; of one number that came, as for a mean over the elements."""
    spread = (sent.counted / max(got.counted, 1)) ** 0.5
    return (sent.norm or 0.0) * spread / (got.norm or 1.0)


def _judges(record: Record, node: Node) -> bool:
    """What the loss is taken of is the output of a module, and another optimizer than its own trains what lies before.

    So it is for a generator: its critic has a loss and an optimizer of its own.
    """
    index, held = lookup(record), in_optimizers(record)
    below: int | None = node.node
    while below is not None and (index.nodes[below].module_call is None or below == node.node):
        if below != node.node and op(index.nodes[below]) not in _PASSED:
            return False
        below = next((one for one in operands(record, below) if one is not None), None)
    call = None if below is None else calls_by_number(record).get(index.nodes[below].module_call or -1)
    while call is not None and call.parent is not None and call.parent in calls_by_number(record):
        call = calls_by_number(record)[call.parent]
    if call is None or below is None:
        return False
    own = parameters_in(record, call)
    critics = {optimizer for leaf in own for optimizer in held.get(leaf, ())}
    makers = {optimizer for leaf in leaves_behind(record, below) - own for optimizer in held.get(leaf, ())}
    return bool(critics) and bool(makers) and critics.isdisjoint(makers)
