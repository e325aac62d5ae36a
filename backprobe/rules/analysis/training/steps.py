"""When things happened: the order of moments, and the optimizer step that each belongs to."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Record, Snapshot


def training_step_of(record: Record, moment: int) -> int:
    """The training step, counted from 0, in which a moment lies: that of `Record.steps`, in which one optimizer counts.

    Of a record without steps: the optimizer steps finished before it.
    """
    rows = _steps_by_moment(record)
    at = bisect_right(rows, (moment, _LAST)) - 1
    if at < 0:
        return step_of(record, moment)
    _first, step, last = rows[at]
    return step if moment <= last else step + 1


_LAST: Final = 1 << 60


@table
def _steps_by_moment(record: Record) -> list[tuple[int, int, int]]:
    """The first moment, the number and the last moment of each step that has moments, in order."""
    return sorted(
        (row.first_moment, row.step, row.last_moment)
        for row in record.steps
        if row.first_moment is not None and row.last_moment is not None
    )


def step_of(record: Record, moment: int) -> int:
    """Steps of any optimizer finished before a moment."""
    return lookup(record).moments[moment].step


def state_at(record: Record, tensor: int, moment: int) -> Snapshot | None:
    """The last snapshot of a tensor at or before a moment; None if it was not seen by then."""
    seen = lookup(record).snapshots_of[tensor]  # in order of moments, as the record has them
    moments = _moments_of(record)
    if tensor not in moments:
        moments[tensor] = [row.moment for row in seen]
    at = bisect_right(moments[tensor], moment)
    return seen[at - 1] if at else None


@table
def _moments_of(_record: Record) -> dict[int, list[int]]:
    """The moments of each tensor's snapshots, filled as they are asked for: bisecting by a key function was slower."""
    return {}


@table
def last_moments(record: Record) -> dict[int, int]:
    """The last moment of each site's statement."""
    return {row.site: row.moment for row in record.moments if row.site is not None}
