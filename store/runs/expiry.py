"""Runs that nobody finishes: leases that ran out, claims given back, queue deadlines, cancels.

Our own failures use up attempts and then lose the run; a cancel that was asked for wins over both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

import sqlalchemy as sa

from store.database.session import Database, Transaction
from store.records.expiry.sweep import delete_records
from store.runs.claims import RECORDER, close_attempt, renew
from store.runs.model import Claim, Queue, RunError, RunRow, Status
from store.runs.reading.run_rows import get
from store.runs.transitions import build_transition, in_status, leave_event
from store.tables import SECONDS, Now, run
from store.webhooks.end_events import tell_ended

REQUEUE_DEADLINE_SECONDS: Final = 24 * 3600.0
"""A run that comes back waits this long for a worker at most."""

PAUSE_MOST_SECONDS: Final = 60.0
"""The pause after a sandbox that broke doubles with each attempt, up to this."""

_which: Final = run.c.id == sa.bindparam("which")
_pause: Final = sa.bindparam("pause_seconds", type_=SECONDS)
_shown: Final = tuple(
    run.c[name] for name in ("id", "part", "public_id", "attempt", "events", "tenant_id", "project_id")
)
_REQUEUE: Final = (
    build_transition("running", "queued")
    .where(_which)
    .values(
        queued_at=Now(),
        not_before=Now(_pause),
        queue_deadline=Now(REQUEUE_DEADLINE_SECONDS),
        max_attempts=run.c.max_attempts + sa.bindparam("more_attempts", type_=sa.Integer()),
    )
    .returning(*_shown)
)
_error: Final[dict[str, Any]] = {
    "error": sa.bindparam("why", type_=run.c.error.type),
    "error_code": sa.bindparam("why_code"),
}
_LOSE: Final = build_transition("running", "lost").where(_which).values(_error).returning(*_shown)
_CANCEL: Final = build_transition("running", "canceled").where(_which).values(_error).returning(*_shown)
_EXPIRED: Final = (
    sa.select(run)
    .where(in_status("running"), run.c.lease_until < Now(), run.c.origin != "watched")
    .order_by(run.c.lease_until)
    .limit(sa.bindparam("most"))
)
_LATE: Final = (
    sa.select(run.c.id)
    .where(in_status("queued"), run.c.queue_deadline < Now())
    .order_by(run.c.id)
    .limit(sa.bindparam("most"))
)
_NEVER_STARTED: Final = build_transition("queued", "lost").where(_which).values(_error).returning(*_shown)
_named: Final = (run.c.public_id == sa.bindparam("its_id"), run.c.tenant_id == sa.bindparam("its_tenant"))
_CANCEL_QUEUED: Final = (
    build_transition("queued", "canceled")
    .where(*_named)
    .values(_error | {"cancel_requested_at": Now()})
    .returning(*_shown)
)
_ASK_RUNNING: Final = (
    sa.update(run)
    .where(*_named, in_status("running"), run.c.cancel_requested_at.is_(None))
    .values(
        cancel_requested_at=Now(),
        lease_until=sa.case((run.c.lease_owner == RECORDER, Now()), else_=run.c.lease_until),
        version=run.c.version + 1,
        events=run.c.events + 1,
    )
    .returning(*_shown)
)
_DEPTH: Final = (
    sa.select(
        run.c.queue,
        sa.func.count().label("queued"),
        sa.func.count().filter(run.c.not_before <= Now()).label("claimable"),
        sa.func.min(run.c.queued_at).label("oldest"),
    )
    .where(in_status("queued"), run.c.queue.in_(("cpu", "gpu")))
    .group_by(run.c.queue)
)
_SECONDS: Final = {
    "postgresql": sa.text("select extract(epoch from clock_timestamp() - cast(:since as timestamptz))"),
    "sqlite": sa.text("select (julianday('now') - julianday(:since)) * 86400.0"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Expired:
    """What became of the runs whose lease had run out: public ids."""

    requeued: tuple[str, ...]
    lost: tuple[str, ...]
    canceled: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """What waits in one queue: runs claimable now, runs queued at all, age of the oldest in seconds."""

    queue: Queue
    claimable: int
    queued: int
    oldest_seconds: float


def _facts(error: RunError) -> dict[str, Any]:
    return {"why": asdict(error), "why_code": error.code}


def give_back(transaction: Transaction, row: Any, outcome: str, reason: str) -> Status:
    """Take a running run from its worker: queued again, lost, or canceled if that was asked for.

    Args:
        transaction: Holds the run's row against others.
        row: The run as it stands, whole.
        outcome: released, sandbox-broke or worker-lost.
        reason: One line for people.
    """
    delete_records(transaction, row.part, row.id)
    close_attempt(transaction, row.id, row.attempt, outcome, detail={"reason": reason} if reason else None)
    which: dict[str, Any] = {"which": row.id}
    status: Status
    if row.cancel_requested_at is not None:
        error = RunError(whose="asked", code="canceled", message="canceled on request; its worker had gone")
        status, after = "canceled", transaction.execute(_CANCEL, which | _facts(error)).one()
    elif outcome == "released" or row.attempt < row.max_attempts:
        free = outcome == "released"
        # a lease that ran out was a pause already: a killed worker's run is to be back within the lease and 2 s
        pause = min(2.0**row.attempt, PAUSE_MOST_SECONDS) if outcome == "sandbox-broke" else 0.0
        status = "queued"
        after = transaction.execute(_REQUEUE, which | {"pause_seconds": pause, "more_attempts": int(free)}).one()
    else:
        text = f"attempt {row.attempt} of {row.max_attempts} ended without a result: {reason or outcome}"
        error = RunError(whose="ours", code=outcome, message=text)
        status, after = "lost", transaction.execute(_LOSE, which | _facts(error)).one()
    kind = "requeued" if status == "queued" else "status"
    payload = {"status": status, "why": outcome}
    leave_event(transaction, after, kind, row.public_id, attempt=row.attempt, payload=payload)
    if status != "queued":
        tell_ended(transaction, row, status)
    return status


def release(
    database: Database,
    claim: Claim,
    *,
    outcome: Literal["released", "sandbox-broke"] = "released",
    reason: str = "",
) -> Status:
    """Give a claimed run back, unfinished.

    `released` (the worker shuts down): queued again at once, and the attempt is not counted. `sandbox-broke`: queued
    again after a pause if attempts are left, else lost. A run whose cancel was asked for is canceled instead.

    Returns:
        The status that the run has now.

    Raises:
        FencedOut: another owns the run, or it has ended.
    """
    with database.begin() as transaction:
        renew(transaction, claim)
        row = transaction.execute(sa.select(run).where(run.c.id == claim.run_id)).one()
        return give_back(transaction, row, outcome, reason)


def expire_leases(database: Database, *, limit: int = 100, unless: Callable[[], bool] = lambda: False) -> Expired:
    """Take back runs whose lease has run out: queued again at once, lost, or canceled if asked.

    Not those of recorders, which nobody else can go on with: `store.recorders.ending` ends them.

    Args:
        database: The queue.
        limit: Runs, at most.
        unless: Asked once the runs are found; true: the clock that found them was set meanwhile, so none is taken.
    """
    with database.read() as reading:  # nearly always nothing: look before taking the write lock
        if reading.execute(_EXPIRED, {"most": 1}).first() is None:
            return Expired(requeued=(), lost=(), canceled=())
    became: dict[str, list[str]] = {"queued": [], "lost": [], "canceled": []}
    with database.begin() as transaction:
        found = transaction.execute(_EXPIRED.with_for_update(skip_locked=True), {"most": limit}).all()
        for row in () if unless() else found:
            status = give_back(transaction, row, "worker-lost", f"worker {row.lease_owner} stopped sending heartbeats")
            became[status].append(row.public_id)
    return Expired(requeued=tuple(became["queued"]), lost=tuple(became["lost"]), canceled=tuple(became["canceled"]))


def expire_queued(
    database: Database, *, limit: int = 100, unless: Callable[[], bool] = lambda: False
) -> tuple[str, ...]:
    """Lose the runs that no worker came for before their queue deadline; their public ids. `unless`: as above."""
    with database.read() as reading:
        if reading.execute(_LATE, {"most": 1}).first() is None:
            return ()
    error = RunError(whose="ours", code="never-started", message="no worker came for it before its queue deadline")
    lost: list[str] = []
    with database.begin() as transaction:
        found = transaction.execute(_LATE.with_for_update(skip_locked=True), {"most": limit}).scalars().all()
        for number in () if unless() else found:
            after = transaction.execute(_NEVER_STARTED, {"which": number} | _facts(error)).one()
            leave_event(transaction, after, "status", after.public_id, payload={"status": "lost", "why": error.code})
            tell_ended(transaction, after, "lost")
            lost.append(after.public_id)
    return tuple(lost)


def request_cancel(transaction: Transaction, public_id: str, *, tenant_id: int = 1) -> RunRow | None:
    """Ask for a run's end. Queued: it is canceled here and now. Running: the flag is set, its worker hears it.

    A recorder's lease is over: the reaper ends its run with what has come.

    Ended: nothing changes. Returns the run as it then is; None: no such run.
    """
    which = {"its_id": public_id, "its_tenant": tenant_id}
    error = RunError(whose="asked", code="canceled", message="canceled before a worker had claimed it")
    after = transaction.execute(_CANCEL_QUEUED, which | _facts(error)).first()
    if after is not None:
        leave_event(transaction, after, "status", public_id, payload={"status": "canceled"})
        tell_ended(transaction, after, "canceled")
    else:
        after = transaction.execute(_ASK_RUNNING, which).first()
        if after is not None:
            leave_event(transaction, after, "cancel-requested", public_id, attempt=after.attempt)
    return get(transaction, public_id, tenant_id=tenant_id)


def depths(
    transaction: Transaction, *, tenant_id: int | None = None, project_id: int | None = None
) -> tuple[Depth, ...]:
    """Count what waits in each queue, also in an empty one: of one tenant, of one project, or (None) of all."""
    query = _DEPTH if tenant_id is None else _DEPTH.where(run.c.tenant_id == tenant_id)
    query = query if project_id is None else query.where(run.c.project_id == project_id)
    found = {row.queue: row for row in transaction.execute(query)}
    queues: tuple[Queue, ...] = ("cpu", "gpu")
    return tuple(_depth(transaction, queue, found.get(queue)) for queue in queues)


def _depth(transaction: Transaction, queue: Queue, row: Any) -> Depth:
    if row is None:
        return Depth(queue=queue, claimable=0, queued=0, oldest_seconds=0.0)
    age = max(0.0, seconds_since(transaction, row.oldest))
    return Depth(queue=queue, claimable=row.claimable, queued=row.queued, oldest_seconds=age)


def seconds_since(transaction: Transaction, time: str) -> float:
    """How long ago a time of the database was, by its own clock; negative: it is to come."""
    return float(transaction.execute(_SECONDS[transaction.dialect.name], {"since": time}).scalar_one())
