"""When things happened: the order of moments, and the optimizer step that each belongs to."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from backprobe.rules.lookup import lookup

if TYPE_CHECKING:
    from backprobe.record import Record, Snapshot


def step_of(record: Record, moment: int) -> int:
    """Optimizer steps finished before a moment."""
    return lookup(record).moments[moment].step


def state_at(record: Record, tensor: int, moment: int) -> Snapshot | None:
    """The last snapshot of a tensor at or before a moment; None if it was not seen by then."""
    seen = lookup(record).snapshots_of[tensor]  # in order of moments, as the record has them
    at = bisect_right(seen, moment, key=_moment)
    return seen[at - 1] if at else None


def _moment(snapshot: Snapshot) -> int:
    return snapshot.moment
