"""A worker's hold on a run: claim and heartbeat. The lease is time, the attempt number is the fence.

1. Each write here says which attempt makes it; a stale one changes no row and raises `FencedOut`.
2. The database's clock decides every lease. A worker measures its own time, and kills its child before the lease ends.
3. The search among tenants runs outside the write lock: under it, 100,000 queued runs stalled all other writers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import sqlalchemy as sa

from backprobe.isolation import IsolationLevel
from store.access.worker_shares import (
    MemoryRoom,
    has_others,
    live_slots,
    may_take_memory,
    may_take_slot,
    promised_bytes,
    standing,
)
from store.database.session import Database, Transaction
from store.runs.limits import Limits
from store.runs.model import Claim, FencedOut, Queue
from store.runs.transitions import build_transition, in_status, leave_event
from store.runs.trial import TrialOf
from store.tables import SECONDS, Now, run, run_attempt, snippet, snippet_file, tenant

RECORDER: Final = "recorder"
"""`run.lease_owner` of a watched run while frames come."""

_waiting: Final = run.alias("waiting")
_queued: Final = (_waiting.c.status == sa.literal_column("'queued'"), _waiting.c.queue == sa.bindparam("of_queue"))
_tenants: Final = sa.select(sa.func.min(_waiting.c.tenant_id).label("tenant_id")).where(*_queued).cte(recursive=True)
_TENANTS_WAITING: Final = _tenants.union_all(
    sa.select(
        sa.select(sa.func.min(_waiting.c.tenant_id))
        .where(*_queued, _waiting.c.tenant_id > _tenants.c.tenant_id)
        .correlate(_tenants)
        .scalar_subquery()
    ).where(_tenants.c.tenant_id.is_not(None))
)
"""Tenants with something queued in a queue: a skip scan, one probe of the index run_queue per tenant, however many runs
each has queued."""

_served: Final = run.alias("served")
_BUSY: Final = (
    sa.select(
        _served.c.tenant_id,
        sa.func.count().label("runs"),
        sa.func.count().filter(_served.c.queue == sa.bindparam("of_queue")).label("slots"),
    )
    .where(_served.c.status == sa.literal_column("'running'"), _served.c.origin != "watched")
    .group_by(_served.c.tenant_id)
    .cte("busy")
)
_runs, _slots = sa.func.coalesce(_BUSY.c.runs, 0), sa.func.coalesce(_BUSY.c.slots, 0)
_served_at: Final = (
    sa.select(sa.func.max(_served.c.claimed_at)).where(_served.c.tenant_id == _TENANTS_WAITING.c.tenant_id)
).scalar_subquery()
_TENANTS: Final = (
    sa.select(_TENANTS_WAITING.c.tenant_id)
    .join(tenant, tenant.c.id == _TENANTS_WAITING.c.tenant_id)
    .outerjoin(_BUSY, _BUSY.c.tenant_id == tenant.c.id)
    .where(_runs < tenant.c.max_running, may_take_slot(_slots, live_slots(), has_others(tenant.c.id)))
    .order_by(_runs * 1.0 / tenant.c.weight, _served_at.nulls_first(), tenant.c.id)
)
"""Those that may have one more run, the least served first."""

LOOK_AHEAD: Final = 50
"""Runs of a tenant, in their order, of which the first that the worker has memory for is taken. Bounded, because all of
them may want too much: to read the limits of 10,000 runs takes longer than a write transaction should."""

_lease: Final = sa.bindparam("lease_seconds", type_=SECONDS)
_of_tenant: Final = sa.bindparam("of_tenant", type_=sa.BigInteger())
_next: Final = run.alias("next")
_AHEAD: Final = (
    sa.select(_next.c.id, _next.c.rank_at, promised_bytes(_next).label("promised"))
    .where(
        _next.c.status == sa.literal_column("'queued'"),
        _next.c.queue == sa.bindparam("of_queue"),
        _next.c.tenant_id == _of_tenant,
        _next.c.not_before <= Now(),
        _next.c.min_isolation.in_(sa.bindparam("levels", expanding=True)),
        sa.or_(_next.c.device_class.is_(None), _next.c.device_class.in_(sa.bindparam("devices", expanding=True))),
    )
    .order_by(_next.c.rank_at, _next.c.id)
    .limit(LOOK_AHEAD)
    .subquery("ahead")
)
_candidate: Final = run.alias("candidate")
_standing: Final = standing(_of_tenant)
_FITTING: Final = (
    sa.select(_candidate.c.id)
    .join(_AHEAD, _AHEAD.c.id == _candidate.c.id)
    .join(_standing, sa.true())
    .where(
        _candidate.c.status == sa.literal_column("'queued'"),
        may_take_slot(_standing.c.taken, _standing.c.slots, _standing.c.has_others),
        may_take_memory(_standing.c.held, _AHEAD.c.promised, _standing.c.has_others),
    )
    .order_by(_AHEAD.c.rank_at, _AHEAD.c.id)
    .limit(1)
    .with_for_update(of=_candidate, skip_locked=True)  # SQLite has no such clause, and needs none: BEGIN IMMEDIATE
    .scalar_subquery()
)
_ONE_CLAIM_OF_TENANT: Final = sa.select(tenant.c.id).where(tenant.c.id == _of_tenant).with_for_update(key_share=True)
"""Claims of one tenant that happen at once are made one after the other, else each would count without the others."""

_CLAIM: Final = (
    build_transition("queued", "running")
    .where(run.c.id == _FITTING)
    .values(
        attempt=run.c.attempt + 1,
        lease_owner=sa.bindparam("worker"),
        lease_until=Now(_lease),
        heartbeat_at=Now(),
        claimed_at=Now(),
        started_at=Now(),
    )
    .returning(run)
)
_ATTEMPT: Final = sa.insert(run_attempt).values(
    run_id=sa.bindparam("opened_run", type_=sa.BigInteger()),
    attempt=sa.bindparam("opened_attempt", type_=sa.SmallInteger()),
    worker=sa.bindparam("worker"),
    started_at=Now(),
)
_FILES: Final = (
    sa.select(snippet.c.entry, snippet.c.named, snippet.c.public_id, snippet_file.c.path, snippet_file.c.body)
    .join_from(snippet, snippet_file, snippet_file.c.snippet_id == snippet.c.id)
    .where(snippet.c.id == sa.bindparam("snippet_id"), snippet_file.c.is_text)
    .order_by(snippet_file.c.n)
)
MINE: Final = (run.c.id == sa.bindparam("my_run"), run.c.attempt == sa.bindparam("my_attempt"))
"""The fence. Together with the status in `build_transition`, it makes every write of a stale attempt change no row."""

_recorders: Final = run.c.lease_owner == RECORDER
_BEAT: Final = (
    sa.update(run)
    .where(*MINE, in_status("running"))
    .values(
        lease_until=sa.case((_recorders, run.c.lease_until), else_=Now(_lease)),  # renewed by the frames alone
        heartbeat_at=sa.case((_recorders, run.c.heartbeat_at), else_=Now()),
    )
    .returning(run.c.cancel_requested_at, run.c.lease_owner)
)
_CLOSE_ATTEMPT: Final = (
    sa.update(run_attempt)
    .where(run_attempt.c.run_id == sa.bindparam("my_run"), run_attempt.c.attempt == sa.bindparam("my_attempt"))
    .values(ended_at=Now())
)
CLOSE_FINISHED: Final = _CLOSE_ATTEMPT.values(
    outcome="finished", isolation=sa.bindparam("its_isolation", type_=run_attempt.c.isolation.type)
)
"""The attempt of `mine` has ended as it should; the statement contains the outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """What a heartbeat hears."""

    cancel_requested: bool


def mine(claim: Claim) -> dict[str, int]:
    """Return the parameters of `MINE`."""
    return {"my_run": claim.run_id, "my_attempt": claim.attempt}


def close_attempt(transaction: Transaction, run_id: int, attempt: int, outcome: str, **facts: Any) -> None:
    """Write how an attempt ended."""
    statement = _CLOSE_ATTEMPT.values(outcome=outcome, **facts)
    transaction.execute(statement, {"my_run": run_id, "my_attempt": attempt})


def claim(
    database: Database,
    worker: str,
    memory: MemoryRoom | None = None,
    *,
    queue: Queue = "cpu",
    lease_seconds: float = 30.0,
    levels: Sequence[IsolationLevel] = ("none",),
    devices: Sequence[str] = ("cpu",),
) -> Claim | None:
    """Take the next run of a queue, fairly among tenants; None: nothing that this worker may run is waiting.

    Args:
        database: The queue.
        worker: `worker_node.id` of the one that takes it.
        memory: What it has for the run; None: memory is not counted.
        queue: Of which queue.
        lease_seconds: How long the claim holds unless it is renewed.
        levels: Isolation levels that it really offers: a run is taken if its least level is among them. List all
            that are at most as strong as the strongest.
        devices: Device classes that it offers.
    """
    with database.read() as reading:
        tenants = reading.execute(_TENANTS, {"of_queue": queue}).scalars().all()
    asked = {"worker": worker, "lease_seconds": lease_seconds, "levels": list(levels), "devices": list(devices)}
    asked |= asdict(memory or MemoryRoom())
    for tenant_id in tenants:
        which = {"of_queue": queue, "of_tenant": tenant_id}
        with database.begin() as transaction:
            if transaction.dialect.name == "postgresql":
                transaction.execute(_ONE_CLAIM_OF_TENANT, which)
            row = transaction.execute(_CLAIM, asked | which).first()
            if row is None:
                continue
            opened = {"opened_run": row.id, "opened_attempt": row.attempt, "worker": worker}
            beside = (_ATTEMPT, opened)
            leave_event(transaction, row, "claimed", row.public_id, attempt=row.attempt, beside=beside)
        return _build_claim(database, row, lease_seconds)
    return None


def _build_claim(database: Database, row: Any, lease_seconds: float) -> Claim:
    with database.read() as reading:
        files = reading.execute(_FILES, {"snippet_id": row.snippet_id}).all()
    return Claim(
        run_id=row.id,
        public_id=row.public_id,
        part=row.part,
        tenant_id=row.tenant_id,
        project_id=row.project_id,
        attempt=row.attempt,
        max_attempts=row.max_attempts,
        worker=row.lease_owner,
        files={file.path: file.body.decode() for file in files},
        entry=files[0].entry,
        arguments=tuple(row.arguments),
        limits=Limits.from_stored(row.limits),
        capture=row.capture,
        seed=row.seed,
        rules=row.rules,
        queue=row.queue,
        device_class=row.device_class,
        min_isolation=row.min_isolation,
        lease_seconds=lease_seconds,
        cancel_requested=row.cancel_requested_at is not None,
        traceparent=row.traceparent,
        unnamed=None if files[0].named else files[0].public_id,
        trial=None if row.trial_of is None else TrialOf(finding=row.trial_of, fix=row.trial_fix),
    )


def heartbeat(database: Database, claim: Claim, *, lease_seconds: float | None = None) -> Beat:
    """Renew the lease by `lease_seconds` (the claim's by default) from the database's now.

    Raises:
        FencedOut: another owns the run, or it has ended. Kill the child.
    """
    with database.begin() as transaction:
        return renew(transaction, claim, lease_seconds)


def renew(transaction: Transaction, claim: Claim, lease_seconds: float | None = None) -> Beat:
    """Renew the lease inside a transaction that goes on to write. It locks the run's row against the reaper.

    Who shows a watched run while it goes on names itself `RECORDER`: it writes only until the end is begun.

    Raises:
        FencedOut: another owns the run, or it has ended.
    """
    seconds = claim.lease_seconds if lease_seconds is None else lease_seconds
    row = transaction.execute(_BEAT, mine(claim) | {"lease_seconds": seconds}).first()
    if row is None or (claim.worker == RECORDER and row.lease_owner != RECORDER):
        raise FencedOut(claim.public_id, claim.attempt)
    return Beat(cancel_requested=row.cancel_requested_at is not None)
