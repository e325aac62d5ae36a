"""Leaves that are moved for a time and put back: an adversarial weight, a difference quotient, sharpness-aware steps.

with torch.no_grad():
    w.add_(e)       # moved
loss(w).backward()
with torch.no_grad():
    w.copy_(kept)   # put back: as far as its statistics tell, it is what it was before
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import InplaceEvent, Record
    from backprobe.record.rows.tensors import Statistics

_SAME: Final = 1e-6
"""How far a value may be off after it was taken back by a subtraction, in parts of its norm."""

_FURTHER: Final = 10
"""How many times further off it must have been in between."""

_MOST: Final = 4
"""Writes between which a leaf is away from where it was."""


@table
def restored(record: Record) -> frozenset[int]:
    """The numbers of the writes that moved a leaf for a time, and of those that put it back."""
    found: set[int] = set()
    for events in _of_leaves(record).values():
        for at, first in enumerate(events):
            if first.n in found:
                continue
            for last in events[at + 1 : at + _MOST]:
                if last.done_by != "statement":
                    break
                if last.site != first.site and _is_back(record, first, last):
                    found |= {one.n for one in events[at:] if one.n <= last.n}
                    break
    return frozenset(found)


def _of_leaves(record: Record) -> dict[int, list[InplaceEvent]]:
    """The writes of each leaf whose gradient the program reads, in order."""
    read = {row.tensor for row in record.grad_reads if not row.was_none}
    found: defaultdict[int, list[InplaceEvent]] = defaultdict(list)
    for event in record.inplace_events:
        if event.tensor in read:
            found[event.tensor].append(event)
    return {
        tensor: [one for one in events if one.done_by in ("statement", "optimizer")] for tensor, events in found.items()
    }


def _is_back(record: Record, first: InplaceEvent, last: InplaceEvent) -> bool:
    """After the last of two writes the leaf is what it was before the first one, which it was not after that."""
    if first.done_by != "statement":
        return False
    before, moved, back = (
        _value(record, first.tensor, first.moment - 1),
        _value(record, first.tensor, first.moment),
        _value(record, first.tensor, last.moment),
    )
    if before is None or moved is None or back is None:
        return False
    off = _distance(before, back)
    return off <= _SAME and _distance(before, moved) > max(_FURTHER * off, 1e-12)


def _value(record: Record, tensor: int, moment: int) -> Statistics | None:
    rows = (row for row in reversed(lookup(record).snapshots_of[tensor]) if row.moment <= moment)
    return next((row.value for row in rows if row.value is not None), None)


def _distance(one: Statistics, other: Statistics) -> float:
    """The greatest difference of two statistics, in parts of the norm."""
    pairs = ((one.norm, other.norm), (one.sum, other.sum), (one.min, other.min), (one.max, other.max))
    scale = max(abs(one.norm or 0.0), 1e-12)
    return max((abs(a - b) / scale for a, b in pairs if a is not None and b is not None), default=float("inf"))
