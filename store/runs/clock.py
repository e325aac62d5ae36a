"""A database's clock that is set: seen beside a monotonic one, and made up for.

    10:00:00  a worker renews a lease of 30 s: it holds until 10:00:30
    11:00:05  the clock was set an hour ahead, 5 s later: by its words the lease has run out an hour ago
              the hour is added to the lease, which then holds until 11:00:30, as it would have

1. A clock that drifts, or steps by less than a lease can lose, is left alone: the next heartbeat makes up for it.
2. What was written after the clock was set is right already, and is recognized by the time of writing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from store.database.session import Database
from store.runs.transitions import in_status
from store.tables import SECONDS, Moved, Now, run, worker_node

STEP_SECONDS: Final = 2.0
"""The least that counts as set; a look is a second after the one before it."""

_EPOCH: Final = {
    "postgresql": sa.text("select extract(epoch from clock_timestamp())"),
    "sqlite": sa.text("select (julianday('now') - 2440587.5) * 86400.0"),
}
_by: Final = sa.bindparam("seconds", type_=SECONDS)


@dataclass(frozen=True, slots=True)
class _Offset:
    """Between which bounds the database's clock is ahead of the monotonic one; the reading of it took some time."""

    least: float
    most: float


class Clock:
    """Watches the clock of a database.

    Args:
        monotonic: The clock that nobody sets, in seconds.
    """

    def __init__(self, database: Database, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._database, self._monotonic = database, monotonic
        self._known: _Offset | None = None

    def look(self) -> float:
        """By how many seconds it was set since the last look; 0.0: it was not, or this is the first look."""
        with self._database.read() as reading:
            before = self._monotonic()
            now = float(reading.execute(_EPOCH[reading.dialect.name]).scalar_one())
            after = self._monotonic()
        known, self._known = self._known, _Offset(now - after, now - before)
        if known is None:
            return 0.0
        ahead, behind = self._known.least - known.most, known.least - self._known.most
        return ahead if ahead > STEP_SECONDS else -behind if behind > STEP_SECONDS else 0.0


def move_times(database: Database, seconds: float) -> int:
    """Make up for a clock that was set: leases, deadlines and heartbeats from before; how many runs have been moved.

    Ahead, what is from before was written at least so long ago by the new time; behind, it was written in its future.
    What was written behind and longer ago than that has a deadline that comes sooner, and none that never comes.
    """
    leases = (run.c.lease_until, run.c.heartbeat_at)
    waits = (run.c.queued_at, run.c.rank_at, run.c.not_before, run.c.queue_deadline)
    with database.begin() as transaction:
        moved = 0
        for table, condition, since, columns in (
            (run, in_status("running"), run.c.heartbeat_at, leases),
            (run, in_status("queued"), run.c.queued_at, waits),
            (worker_node, sa.true(), worker_node.c.heartbeat_at, (worker_node.c.heartbeat_at,)),
        ):
            from_before = since <= Now(-seconds) if seconds > 0 else since > Now()
            changed = {column.name: Moved(column, _by) for column in columns}
            statement = sa.update(table).where(condition, from_before).values(changed)
            count = transaction.execute(statement, {"seconds": seconds}).rowcount
            moved += count if table is run else 0
    return moved
