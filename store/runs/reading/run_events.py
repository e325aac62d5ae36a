"""What happened to a run, in order: for streams that resume where they were cut."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from store.database.in_clause import in_numbers
from store.database.session import Transaction
from store.runs.model import ENDED, RunRow
from store.tables import run, run_event

Standing = tuple[int, bool]
"""Number of a run's last event, and whether the run has ended."""

_PART: Final = sa.select(run.c.part).where(run.c.id == sa.bindparam("its_run")).scalar_subquery()
_SINCE: Final = (
    sa.select(run_event)
    .where(
        run_event.c.part == _PART,
        run_event.c.run_id == sa.bindparam("its_run"),
        run_event.c.seq > sa.bindparam("after"),
    )
    .order_by(run_event.c.seq)
    .limit(sa.bindparam("most"))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event of a run.

    Attributes:
        seq: Counts the run's events from 1 without a gap.
        kind: queued, claimed, cancel-requested, requeued, status, ...
        attempt: During which; None: none.
        payload: A few facts, never content of a record.
    """

    seq: int
    at: str
    kind: str
    attempt: int | None
    payload: Mapping[str, Any]


def since(transaction: Transaction, run: RunRow, after: int = 0, *, limit: int = 100) -> tuple[Event, ...]:
    """Load the run's events after number `after`, in order, at most `limit`; empty if nothing more has happened.

    Those of one transaction come together, and a number is never seen before a smaller one: the run's row counts them
    under its lock.
    """
    rows = transaction.execute(_SINCE, {"its_run": run.run_id, "after": after, "most": limit})
    return tuple(Event(seq=row.seq, at=row.at, kind=row.kind, attempt=row.attempt, payload=row.payload) for row in rows)


def standing(transaction: Transaction, runs: Collection[int]) -> dict[int, Standing]:
    """How far each of the runs, by `run_id`, has come; one that there is not is not in it."""
    if not runs:
        return {}
    query = sa.select(run.c.id, run.c.events, run.c.status).where(in_numbers(run.c.id, runs))
    return {row.id: (row.events, row.status in ENDED) for row in transaction.execute(query)}
