"""Watched runs that go on and have frames which no rule has looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from backprobe.record import Record
from store.database.session import Database
from store.findings.judging_attempts import NOT_QUARANTINED
from store.recorders.frames import record_of
from store.recorders.recorders import claim_of
from store.runs.claims import RECORDER
from store.runs.model import Claim
from store.runs.transitions import in_status
from store.tables import recorder, run

MOST_OPEN: Final = 50
"""Runs judged in one round: of each tenant the run with the latest heartbeat, then of each the second, and so on."""

_place: Final = sa.func.row_number().over(partition_by=run.c.tenant_id, order_by=run.c.heartbeat_at.desc())
_OPEN: Final = (
    sa.select(run, recorder.c.next_frame)
    .join_from(run, recorder, recorder.c.run_id == run.c.id)
    .where(in_status("running"), run.c.origin == "watched", run.c.lease_owner == RECORDER)
    .where(run.c.cancel_requested_at.is_(None), recorder.c.next_frame > 1, NOT_QUARANTINED)
    .order_by(_place, run.c.heartbeat_at.desc())
    .limit(MOST_OPEN)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRun:
    """A watched run, and how many frames of it have come."""

    claim: Claim
    frames: int


def open_runs(database: Database) -> Sequence[OpenRun]:
    """List the watched runs that go on, at most `MOST_OPEN`, shared out among the tenants."""
    with database.read() as reading:
        rows = reading.execute(_OPEN).all()
    return [OpenRun(claim=claim_of(row, worker=RECORDER, lease_seconds=0.0), frames=row.next_frame) for row in rows]


def record_so_far(database: Database, open_run: OpenRun) -> Record | None:
    """Load the record as far as it came; None if there is nothing to judge."""
    record, _ = record_of(database, open_run.claim.run_id, open_run.frames)
    return record
