"""What has happened since a moment: runs that ended, attempts that ended, tries at deliveries. Counted, never reset.

1. A look counts what came between the last look and a few seconds ago: what is being written then has been committed,
   so nothing is missed and nothing is counted twice.
2. Each query goes by the index of the time it asks for; a look every few seconds reads a few rows.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

import sqlalchemy as sa

from store.database.session import Transaction
from store.runs.states import NEXT, WAITING
from store.tables import SECONDS, Now, delivery_try, run, run_attempt

LAG_SECONDS: Final = 5.0
"""How far behind the clock a look stays: longer than a transaction that ends a run goes on after it read the clock."""

RUN_SECONDS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0)
"""Upper bounds of the buckets of `Happened.run_seconds`; 3600 is the most that a run may ask for."""

STATUSES: Final = tuple(status for status in NEXT if status not in WAITING)
ATTEMPT_ENDINGS: Final = ("finished", "worker-lost", "sandbox-broke", "released", "canceled")
TRY_RESULTS: Final = ("delivered", "refused", "unanswered")


def _span(column: Any) -> tuple[Any, ...]:
    return (column > sa.bindparam("after", type_=column.type), column <= sa.bindparam("until", type_=column.type))


_UNTIL: Final = sa.select(Now(sa.bindparam("seconds", type_=SECONDS)))
_RUNS: Final = (
    sa.select(
        run.c.status,
        sa.func.count().label("runs"),
        sa.func.coalesce(sa.func.sum(run.c.snapshots), 0).label("snapshots"),
        sa.func.coalesce(sa.func.sum(run.c.wall_seconds), 0.0).label("seconds"),
        sa.func.count(run.c.wall_seconds).label("timed"),
        *(sa.func.count().filter(run.c.wall_seconds <= most).label(f"to_{n}") for n, most in enumerate(RUN_SECONDS)),
    )
    .where(run.c.finished_at.is_not(None), *_span(run.c.finished_at))
    .group_by(run.c.status)
)
_ATTEMPTS: Final = (
    sa.select(run_attempt.c.outcome, sa.func.count().label("n"))
    .where(run_attempt.c.ended_at.is_not(None), *_span(run_attempt.c.ended_at))
    .group_by(run_attempt.c.outcome)
)
_result: Final = sa.case(
    (delivery_try.c.status.is_(None), "unanswered"),
    (delivery_try.c.status.between(200, 299), "delivered"),
    else_="refused",
)
_TRIES: Final = (
    sa.select(_result.label("result"), sa.func.count().label("n")).where(*_span(delivery_try.c.at)).group_by(_result)
)


@dataclass(slots=True)
class Happened:
    """How often, since the tally began.

    Attributes:
        runs: Runs that ended, by status. attempts: by how they ended (`run_attempt.outcome`).
        tries: At deliveries: delivered (2xx), refused (another status), unanswered.
        run_seconds: Runs that took at most so long, by the bounds of `RUN_SECONDS`; runs without a program are not in.
        timed: Runs in all of these. seconds: what they took together.
        snapshots: Snapshots in records of runs that ended.
    """

    runs: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(STATUSES, 0)))
    attempts: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(ATTEMPT_ENDINGS, 0)))
    tries: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(TRY_RESULTS, 0)))
    run_seconds: list[int] = field(default_factory=lambda: [0] * len(RUN_SECONDS))
    timed: int = 0
    seconds: float = 0.0
    snapshots: int = 0


class Tally:
    """Counts from its first look on, in memory: another process has its own, and counts the same.

    Attributes:
        since: Counted up to here (ISO 8601 in UTC); None: no look yet.
    """

    def __init__(self, since: str | None = None, lag_seconds: float = LAG_SECONDS) -> None:
        self.since = since
        self._lag_seconds = lag_seconds
        self._happened = Happened()
        self._looking = threading.Lock()

    def look(self, reading: Transaction) -> Happened:
        """Count what has come since the last look. The value is the tally's own: read it, do not keep it."""
        with self._looking:
            until: str = reading.execute(_UNTIL, {"seconds": -self._lag_seconds}).scalar_one()
            if self.since is not None and until > self.since:
                self._count(reading, {"after": self.since, "until": until})
            self.since = max(until, self.since or until)
            return self._happened

    def _count(self, reading: Transaction, span: dict[str, str]) -> None:
        found = [reading.execute(query, span).all() for query in (_RUNS, _ATTEMPTS, _TRIES)]  # all, or none is counted
        ended, attempts, tries = found
        so_far = self._happened
        for row in ended:
            so_far.runs[row.status] += row.runs
            so_far.snapshots += int(row.snapshots)
            so_far.seconds += float(row.seconds)
            so_far.timed += row.timed
            for n in range(len(RUN_SECONDS)):
                so_far.run_seconds[n] += getattr(row, f"to_{n}")
        for row in attempts:
            so_far.attempts[row.outcome] += row.n
        for row in tries:
            so_far.tries[row.result] += row.n
