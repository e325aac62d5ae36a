"""When things happened: the order of moments, and the optimizer step that each belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backprobe.rules.lookup import lookup

if TYPE_CHECKING:
    from backprobe.record import Record, Snapshot


def step_of(record: Record, moment: int) -> int:
    """Optimizer steps finished before a moment."""
    return lookup(record).moments[moment].step


def state_at(record: Record, tensor: int, moment: int) -> Snapshot | None:
    """The last snapshot of a tensor at or before a moment; None if it was not seen by then."""
    last: Snapshot | None = None
    for snapshot in lookup(record).snapshots_of[tensor]:
        if snapshot.moment > moment:
            break
        last = snapshot
    return last
