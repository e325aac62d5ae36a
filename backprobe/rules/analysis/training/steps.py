"""When things happened: the order of moments, and the optimizer step that each belongs to."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Record, Snapshot


def step_of(record: Record, moment: int) -> int:
    """Optimizer steps finished before a moment."""
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
