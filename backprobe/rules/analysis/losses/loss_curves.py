"""How the loss of each backward statement went over the run, and how large gradients were against their weights."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Record


@dataclass(frozen=True, slots=True)
class Curve:
    """The losses of the backward calls of one statement, in order.

    Attributes:
        losses: Values of the only root, in its own unit; NaN and infinities as they are.
    """

    site: int
    calls: list[BackwardCall]
    losses: list[float]


@table
def curves(record: Record) -> list[Curve]:
    """One curve for each statement whose calls have one scalar root with a measured value."""
    found: dict[int, Curve] = {}
    for call in record.backward_calls:
        loss = _loss(record, call)
        if call.site is not None and call.accumulate_grad and loss is not None:
            one = found.setdefault(call.site, Curve(call.site, [], []))
            one.calls.append(call)
            one.losses.append(loss)
    return list(found.values())


def first_losses(record: Record) -> tuple[float, ...]:
    """The numbers that the backward calls before the first step began from, up to one that began from another thing.

    A call that raised, or asked for gradients without storing them, counts: it began from its root as well.
    """
    stepped = min((one.moment for one in record.optimizer_events if one.kind == "step"), default=math.inf)
    found: list[float] = []
    for call in record.backward_calls:
        loss = _loss(record, call)
        if loss is None or (found and call.moment_before > stepped):
            break
        found.append(loss)
    return tuple(found)


def _loss(record: Record, call: BackwardCall) -> float | None:
    if len(call.roots) != 1 or call.roots[0].tensor is None:
        return None
    history = lookup(record).snapshots_of[call.roots[0].tensor]
    measured = next((row.value for row in history if row.value is not None and row.value.counted == 1), None)
    if measured is None:
        return None
    if measured.nan:
        return math.nan
    return math.inf if measured.inf else measured.sum


@table
def _norms(_record: Record) -> dict[int, tuple[list[int], list[float]]]:
    """The moments at which a tensor's norm was measured and the norms, by tensor, filled as they are asked for."""
    return {}


def weight_norm(record: Record, tensor: int, moment: int) -> float | None:
    """The L2 norm of a tensor's elements as last measured up to a moment; None if it was not."""
    known = _norms(record)
    if tensor not in known:
        rows = [
            (row.moment, row.value.norm)
            for row in lookup(record).snapshots_of[tensor]
            if row.value is not None and row.value.norm is not None
        ]
        known[tensor] = [at for at, _norm in rows], [norm for _at, norm in rows]
    moments, norms = known[tensor]
    at = bisect_right(moments, moment)
    return norms[at - 1] if at else None


@table
def relative_gradients(record: Record) -> dict[int, list[tuple[int, float]]]:
    """Gradient over weight norm of each weight that a call reached, from the loss to the input: `(tensor, ratio)`.

    By call. Only weights of two dimensions and more: a bias or a norm's factor may rightly be near zero.
    """
    index = lookup(record)
    found: dict[int, list[tuple[int, int, float]]] = {}
    for node in record.nodes:
        leaf = node.variable
        if leaf is None or len(index.tensors[leaf].shape or ()) < 2:
            continue
        for row in index.passes_of_node[node.node]:
            measured = row.grad_output
            if row.position is None or measured is None or measured.norm is None:
                continue
            weight = weight_norm(record, leaf, index.calls[row.call].moment_before)
            if weight:
                found.setdefault(row.call, []).append((row.position, leaf, measured.norm / weight))
    return {call: [(leaf, ratio) for _position, leaf, ratio in sorted(rows)] for call, rows in found.items()}
