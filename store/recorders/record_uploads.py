"""A record that came from elsewhere, stored as a new run that has ended: `origin` uploaded.

The record was decoded, capped and checked before (`backprobe.record.loads`); it is a stranger's word all the same. What
it says of its end is believed as far as the run's status goes; there is nobody who saw it from outside.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from backprobe.record import BadRecord
from store.database.ids import new_id, part
from store.database.session import Database
from store.records.expiry import partitions
from store.runs.completion import Ending, finish
from store.runs.limits import Limits
from store.runs.model import Claim, RunError, RunRow
from store.runs.reading.run_rows import by_number
from store.runs.submission import NOTHING_YET
from store.runs.transitions import leave_event
from store.tables import Now, run, run_attempt, run_event

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules import Judgement, WhyNone

LEASE_SECONDS: Final = 300.0
"""For the writing of it. Whoever dies meanwhile leaves a run that the reaper ends as lost."""

WORKER: Final = "upload"
_INSERT: Final = (
    sa.insert(run)
    .values(
        **{name: Now() for name in ("created_at", "queued_at", "rank_at", "not_before", "claimed_at", "started_at")},
        queue_deadline=Now(LEASE_SECONDS),
        kept_until=Now(LEASE_SECONDS),
        lease_until=Now(LEASE_SECONDS),
        heartbeat_at=Now(),
        lease_owner=WORKER,
        status="running",
        origin="uploaded",
        queue="cpu",
        min_isolation="none",
        priority=5,
        attempt=1,
        max_attempts=1,
        arguments=[],
        **NOTHING_YET,
    )
    .returning(run.c.id, run.c.part, run.c.events)
)


def upload(
    database: Database,
    record: Record,
    judgement: Judgement | None,
    whys: Mapping[int, WhyNone] | None = None,
    *,
    tenant_id: int = 1,
    project_id: int = 1,
    created_by: str = "local",
    labels: Mapping[str, str] | None = None,
) -> RunRow:
    """Store a record as a run; it is visible when it is whole.

    Raises:
        BadRecord: a number in it does not fit its column. Nothing is left of it: a sender's fault is no lost run.
    """
    public_id = new_id("run")
    values: dict[str, Any] = {"public_id": public_id, "part": part(public_id), "labels": dict(labels or {})}
    values |= {"tenant_id": tenant_id, "project_id": project_id, "created_by": created_by}
    values |= {"limits": Limits().to_column(), "capture": {"tier": record.header.tier}}
    with database.begin() as transaction:
        partitions.ensure(transaction, values["part"])
        row = transaction.execute(_INSERT, values).one()
        attempt = {"run_id": row.id, "attempt": 1, "worker": WORKER}
        transaction.execute(sa.insert(run_attempt).values(started_at=Now()), attempt)
        leave_event(transaction, row, "claimed", public_id, attempt=1)
    claim = Claim(
        run_id=row.id,
        public_id=public_id,
        part=row.part,
        tenant_id=tenant_id,
        project_id=project_id,
        attempt=1,
        max_attempts=1,
        worker=WORKER,
        files={},
        entry="",
        arguments=(),
        limits=Limits(),
        capture={},
        seed=None,
        rules=None,
        queue="cpu",
        device_class=None,
        min_isolation="none",
        lease_seconds=LEASE_SECONDS,
        cancel_requested=False,
    )
    try:
        finish(database, claim, ending_of(record), record, judgement, whys)
    except BadRecord:
        _forget(database, claim)
        raise
    except Exception:
        error = RunError(whose="ours", code="upload-refused", message="its record could not be stored")
        finish(database, claim, Ending(status="lost", error=error), None, None)
        raise
    with database.read() as reading:
        return by_number(reading, row.id)


def _forget(database: Database, claim: Claim) -> None:
    """Delete a run whose record was refused; `finish` has written nothing of it."""
    with database.begin() as transaction:
        which = (run_event.c.part == claim.part, run_event.c.run_id == claim.run_id)
        transaction.execute(sa.delete(run_event).where(*which))
        transaction.execute(sa.delete(run_attempt).where(run_attempt.c.run_id == claim.run_id))
        transaction.execute(sa.delete(run).where(run.c.id == claim.run_id))


def ending_of(record: Record) -> Ending:
    """How a program ended, as its record has it."""
    end = record.end
    if end is None:
        message = "the record has no end: its program was stopped, or its record was cut"
        return Ending(status="failed", error=RunError(whose="program", code="record-cut", message=message))
    seconds = round(end.duration_ns / 1e9, 6)
    uncaught = next((raised for raised in record.raised if raised.n == end.exception), None)
    if end.ending == "raised" and uncaught is not None:
        frame = uncaught.frames[-1] if uncaught.frames else None
        error = RunError(
            whose="program",
            code="raised",
            message=uncaught.message,
            type=uncaught.type,
            path=None if frame is None else frame.path,
            line=None if frame is None else frame.line,
        )
    elif end.ending == "raised" or end.exit_code != 0:
        error = RunError(whose="program", code="exited", message=f"it exited with {end.exit_code}")
    else:
        error = None
    status = "succeeded" if error is None else "failed"
    return Ending(status=status, error=error, exit_code=end.exit_code, wall_seconds=seconds)
