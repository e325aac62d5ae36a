"""The end of a watched run: its frames are decoded as untrusted input, and become its record.

1. `close` says how the job ended, and from then on no frame is taken; it names who writes the end, and for how long.
2. `settle` writes it: no transaction is open while it decodes. Who dies meanwhile, or is away for too long, is fenced
   out by the attempt of whoever comes next: the recorder that asks again, or the reaper.
3. The record is judged soon after, like one that was uploaded: the mark for it is set before, so no crash loses it.
4. Of a recorder that is silent for too long, or was canceled, what has come is the record: the reaper ends it.
5. `hand_over` keeps what was told and leaves the writing to the reaper: a job of 64 ranks ends 64 times at once.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal

import sqlalchemy as sa

from backprobe.record import BadRecord, Record
from store.database.session import Database, Transaction
from store.recorders.frames import drop_bodies, record_of
from store.recorders.record_uploads import ending_of
from store.recorders.recorder_requests import Missing
from store.recorders.recorders import claim_of, lock_run, recorder_of
from store.runs.claims import close_attempt
from store.runs.completion import Ending, finish
from store.runs.model import ENDED, Claim, FencedOut, RunError
from store.runs.transitions import in_status
from store.tables import Now, recorder, run, run_attempt

END_SECONDS: Final = 60.0
"""For the writing of an end; each piece of a large record renews it."""

_ENDER: Final = "ending "
_OVERDUE: Final = (
    sa.select(run.c.public_id, run.c.tenant_id, recorder.c.told)
    .join_from(run, recorder, recorder.c.run_id == run.c.id)
    .where(in_status("running"), run.c.lease_until < Now(), run.c.origin == "watched")
    .order_by(run.c.lease_until)
)
_OVER: Final = sa.select(sa.literal(1)).where(run.c.id == sa.bindparam("its_run"), run.c.lease_until < Now())


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedEnd:
    """How a job ended, in its recorder's words; a field that is None is read off the record's end.

    Attributes:
        status: None: as the record says. error: of a job that failed; None: no further details.
    """

    status: Literal["succeeded", "failed", "canceled"] | None = None
    exit_code: int | None = None
    wall_seconds: float | None = None
    error: Mapping[str, Any] | None = None


class BeingEnded(Exception):
    """Another request, or the reaper, writes the end of this run; ask again in some seconds."""


def close(
    transaction: Transaction,
    public_id: str,
    told: ReportedEnd | None,
    *,
    frames: int | None = None,
    tenant_id: int = 1,
    sees_project: int | None = None,
) -> Claim | None:
    """Take no more frames, and be the one who writes the end: pass what comes back to `settle`, after the commit.

    Args:
        transaction: To write by.
        public_id: The run's.
        told: How the job ended; None: nobody told, its lease has run out. What was told first is kept.
        frames: How many its recorder has sent; None: it does not say.
        tenant_id: Whose run.
        sees_project: The only project that the caller sees; None: all of the tenant's.

    Returns:
        None: it has ended before.

    Raises:
        Unknown, Differs: as of `recorders.lock_run`. Missing: fewer than `frames` have come; more may still be sent.
        BeingEnded: somebody else has its end in hand.
    """
    row = lock_run(transaction, public_id, tenant_id=tenant_id, sees_project=sees_project)
    if row.status in ENDED:
        return None
    state = recorder_of(transaction, row.id)
    over = transaction.execute(_OVER, {"its_run": row.id}).first() is not None
    begun = row.lease_owner.startswith(_ENDER)
    if (begun or told is None) and not over:
        raise BeingEnded
    _check_whole(row, state, frames)
    facts: dict[str, Any] = {"lease_owner": f"{_ENDER}{secrets.token_hex(8)}", "lease_until": Now(END_SECONDS)}
    facts |= {"judge_due_at": Now()}
    attempt = row.attempt
    if begun:  # who had it in hand may still live, and must be fenced out
        attempt += 1
        facts |= {"attempt": attempt, "max_attempts": attempt}
        close_attempt(transaction, row.id, row.attempt, "worker-lost")
        opened = {"run_id": row.id, "attempt": attempt, "worker": facts["lease_owner"]}
        transaction.execute(sa.insert(run_attempt).values(started_at=Now()), opened)
    transaction.execute(sa.update(run).where(run.c.id == row.id).values(**facts))
    if told is not None and state.told is None:
        transaction.execute(sa.update(recorder).where(recorder.c.run_id == row.id).values(told=asdict(told)))
    return replace(claim_of(row, worker=_ENDER, lease_seconds=END_SECONDS), attempt=attempt, max_attempts=attempt)


def hand_over(
    transaction: Transaction,
    public_id: str,
    told: ReportedEnd,
    *,
    frames: int | None = None,
    tenant_id: int = 1,
    sees_project: int | None = None,
) -> bool:
    """Take no more frames, and leave the writing of the end to the reaper, which sees to it within seconds.

    Args:
        transaction, public_id, told, frames, tenant_id, sees_project: As of `close`.

    Returns:
        Whether it was told now, and not before.

    Raises:
        Unknown, Differs, Missing: as of `close`.
    """
    row = lock_run(transaction, public_id, tenant_id=tenant_id, sees_project=sees_project)
    if row.status in ENDED:
        return False
    state = recorder_of(transaction, row.id)
    _check_whole(row, state, frames)
    if state.told is not None:
        return False
    transaction.execute(sa.update(recorder).where(recorder.c.run_id == row.id).values(told=asdict(told)))
    if not row.lease_owner.startswith(_ENDER):
        transaction.execute(sa.update(run).where(run.c.id == row.id).values(lease_until=Now(-1.0)))
    return True


def _check_whole(row: Any, state: Any, frames: int | None) -> None:
    """Refuse an end before all frames have come; of a run that was canceled, or whose end was told, none is awaited.

    Raises:
        Missing: fewer than `frames` have come.
    """
    if frames is not None and frames > state.next_frame and state.told is None and row.cancel_requested_at is None:
        said = f"{frames} frames were sent, and {state.next_frame} have come: frame {state.next_frame} is missing"
        raise Missing(said, state.next_frame)


def settle(database: Database, claim: Claim) -> bool:
    """Write the end that `close` began. False: somebody else has it in hand by now.

    If it fails, whoever asks next takes it over at once.
    """
    try:
        with database.read() as reading:
            state = recorder_of(reading, claim.run_id)
            asked = sa.select(run.c.cancel_requested_at, run.c.heartbeat_at).where(run.c.id == claim.run_id)
            canceled_at, heard_at = reading.execute(asked).one()
        record, refused = record_of(database, claim.run_id, state.next_frame)
        told = None if state.told is None else ReportedEnd(**state.told)
        silent = None if canceled_at is not None else heard_at
        ending = _ending(told, record, refused, silent=silent)
        try:
            finish(database, claim, ending, record, None, live=True)
        except BadRecord as error:
            finish(database, claim, _ending(told, None, error, silent=silent), None, None, live=True)
    except FencedOut:
        return False
    except Exception:
        _let_go(database, claim)
        raise
    drop_bodies(database, claim.run_id)
    return True


def _let_go(database: Database, claim: Claim) -> None:
    mine = (run.c.id == claim.run_id, run.c.attempt == claim.attempt, in_status("running"))
    with database.begin() as transaction:
        transaction.execute(sa.update(run).where(*mine).values(lease_until=Now(-1.0)))


@dataclass(frozen=True, slots=True)
class Overdue:
    """A watched run whose lease has run out: silent, canceled, handed over, or left by who wrote its end.

    Attributes:
        was_told: Its recorder has said how the job ended.
    """

    public_id: str
    tenant_id: int
    was_told: bool


def overdue(database: Database, *, limit: int = 10) -> Sequence[Overdue]:
    """List the watched runs that are to be ended, those that have waited longest first."""
    with database.read() as reading:
        rows = reading.execute(_OVERDUE.limit(limit))
        return [Overdue(row.public_id, row.tenant_id, row.told is not None) for row in rows]


def end_overdue(database: Database, record: Overdue) -> bool:
    """End one of `overdue` with what has come. False: somebody else has, or has it in hand."""
    try:
        with database.begin() as transaction:
            claim = close(transaction, record.public_id, None, tenant_id=record.tenant_id)
    except BeingEnded:
        return False
    return claim is not None and settle(database, claim)


def _ending(
    told: ReportedEnd | None, record: Record | None, refused: BadRecord | None, *, silent: str | None
) -> Ending:
    """How the run ended: as was told, else as the record says; where nobody told, lost (silent since), or canceled."""
    if told is None and silent is None:
        error = RunError(whose="asked", code="canceled", message="canceled on request; the record is what had come")
        return Ending(status="canceled", error=error)
    if told is None:
        message = f"the last heartbeat of its recorder was at {silent}; the record holds what had arrived"
        return Ending(status="lost", error=RunError(whose="ours", code="recorder-silent", message=message))
    if record is None and refused is not None:
        message = f"the frames that were sent make no record: {refused}"
        error = RunError(whose="program", code="bad-record", message=message)
        return Ending(status="failed", error=error, exit_code=told.exit_code, wall_seconds=told.wall_seconds)
    seen = None if record is None or record.end is None else ending_of(record)
    exit_code = told.exit_code if told.exit_code is not None or seen is None else seen.exit_code
    wall = told.wall_seconds if told.wall_seconds is not None or seen is None else seen.wall_seconds
    if told.status is None and seen is None:
        message = "its recorder ended without saying how, and sent no end of the record"
        error = RunError(whose="program", code="record-cut", message=message)
        return Ending(status="failed", error=error, exit_code=exit_code, wall_seconds=wall)
    status = told.status or (seen.status if seen is not None else "failed")
    return Ending(status=status, error=_error(told, status, seen), exit_code=exit_code, wall_seconds=wall)


def _error(told: ReportedEnd, status: str, seen: Ending | None) -> RunError | None:
    if status == "succeeded":
        return None
    if status == "canceled":
        return RunError(whose="asked", code="canceled", message="its job was stopped by whoever ran it")
    if told.error is not None:
        return RunError(whose="program", code="raised", **told.error)
    if seen is not None and seen.error is not None:
        return seen.error
    message = "its job failed" if told.exit_code is None else f"it exited with {told.exit_code}"
    return RunError(whose="program", code="exited", message=message)
