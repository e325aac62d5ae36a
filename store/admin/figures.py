"""Figures of the service, for /metrics and `backprobe stats`: a fixed list, each with a name, a unit and a meaning.

What /metrics counts besides is in `store.admin.tally`.

1. Every query goes by an index and looks at most an hour back: asked every few seconds it costs a few milliseconds.
2. No figure names a run, a tenant or anything else of a stranger's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from store.admin import workers
from store.admin.tenant_slots import slots_by_tenant
from store.database.session import Database, Transaction
from store.findings.judging_attempts import count_unfinished
from store.records.expiry import partitions
from store.runs import lifecycle as runs
from store.runs.expiry import seconds_since
from store.runs.transitions import in_status
from store.tables import Now, delivery, outbox, run, run_attempt, tenant

WINDOW_SECONDS: Final = 3600.0
"""What rates look back at: runs that were accepted within it."""

MEANINGS: Final = {
    "queue_depth": "runs queued",
    "queue_claimable": "runs queued that a worker may take now",
    "queue_oldest_seconds": "how long the oldest of them has been queued",
    "runs_running": "runs that a worker holds",
    "leases_overdue": "of these, leases that have run out: the reaper takes them back within seconds",
    "workers": "workers that have beaten in the last minute",
    "worker_slots": "runs that they can hold together",
    "worker_slots_busy": "runs that they hold",
    "tenants_busy": "tenants that hold slots; `backprobe tenant slots` names them",
    "tenant_slots_most": "slots that the tenant with the most of them holds",
    "runs_hour": "runs accepted within the last hour, by the status they have now",
    "lease_expiries_hour": "attempts at runs of the last hour whose worker stopped sending heartbeats",
    "sandbox_failures_hour": "attempts at runs of the last hour that a broken sandbox ended",
    "retries_hour": "attempts at runs of the last hour beyond the first",
    "snapshots_hour": "snapshots stored of runs of the last hour",
    "record_bytes_hour": "bytes of records stored of runs of the last hour",
    "findings_hour": "errors, warnings and notes of runs of the last hour",
    "outbox_unplanned": "events whose deliveries the reaper has not made yet",
    "deliveries_pending": "deliveries on their way",
    "deliveries_oldest_seconds": "how long the most overdue of them has been due",
    "deliveries_dead": "deliveries that were given up",
    "judgings_unfinished": "stored records whose judging has begun and not ended",
    "judgings_quarantined": "of these, records that ended their judge's process three times: nothing judges them",
    "records_overdue": "records that were to be kept till now, and are still here",
    "months_ahead": "months from this one on that records have partitions for: the reaper keeps three (PostgreSQL)",
    "database_bytes": "bytes of the database on its disk",
    "database_free_bytes": "of these, free for new rows (SQLite)",
}
"""What each figure is. Names end in their unit, or count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number. `label` tells several of one name apart: a queue or a status; empty: there is one."""

    name: str
    value: float
    label: str = ""


_LATELY: Final = (run.c.tenant_id == tenant.c.id, run.c.created_at > Now(-WINDOW_SECONDS))
_ACCEPTED: Final = (
    sa.select(
        run.c.status,
        sa.func.count().label("runs"),
        sa.func.coalesce(sa.func.sum(run.c.snapshots), 0).label("snapshots"),
        sa.func.coalesce(sa.func.sum(run.c.record_bytes), 0).label("record_bytes"),
        sa.func.coalesce(sa.func.sum(run.c.errors + run.c.warnings + run.c.notes), 0).label("findings"),
    )
    .select_from(tenant, run)
    .where(*_LATELY)
    .group_by(run.c.status)
)
_ATTEMPTS: Final = (
    sa.select(
        sa.func.count().filter(run_attempt.c.attempt > 1).label("retries"),
        sa.func.count().filter(run_attempt.c.outcome == "worker-lost").label("lost"),
        sa.func.count().filter(run_attempt.c.outcome == "sandbox-broke").label("broke"),
    )
    .select_from(tenant, run, run_attempt)
    .where(*_LATELY, run_attempt.c.run_id == run.c.id)
)
_HELD: Final = sa.select(
    sa.func.count().label("runs"), sa.func.count().filter(run.c.lease_until < Now()).label("overdue")
).where(in_status("running"), run.c.origin != "watched")
_UNPLANNED: Final = sa.select(sa.func.count()).select_from(outbox).where(outbox.c.planned_at.is_(None))
_PENDING: Final = sa.select(sa.func.count().label("n"), sa.func.min(delivery.c.next_at).label("next_at")).where(
    delivery.c.state == sa.literal_column("'pending'")
)
_DEAD: Final = sa.select(sa.func.count()).select_from(delivery).where(delivery.c.state == sa.literal_column("'dead'"))
_OVERDUE: Final = (
    sa.select(sa.func.count())
    .select_from(run)
    .where(run.c.record_state.in_([sa.literal_column("'partial'"), sa.literal_column("'whole'")]))
    .where(run.c.kept_until < Now(), sa.not_(run.c.pinned))
)


def figures(database: Database) -> tuple[Figure, ...]:
    """All of them, now."""
    with database.read() as reading:
        return (*current(reading, database), *_of_the_last_hour(reading))


def current(reading: Transaction, database: Database) -> Iterator[Figure]:
    """Those of this moment: all but those of the last hour."""
    for depth in runs.depths(reading):
        yield Figure(name="queue_depth", label=depth.queue, value=depth.queued)
        yield Figure(name="queue_claimable", label=depth.queue, value=depth.claimable)
        yield Figure(name="queue_oldest_seconds", label=depth.queue, value=depth.oldest_seconds)
    held = reading.execute(_HELD).one()
    yield Figure(name="runs_running", value=held.runs)
    yield Figure(name="leases_overdue", value=held.overdue)
    live = workers.live(reading)
    for queue in ("cpu", "gpu"):
        mine = [node for node in live if queue in node.queues]
        yield Figure(name="workers", label=queue, value=len(mine))
        yield Figure(name="worker_slots", label=queue, value=sum(node.slots for node in mine))
        yield Figure(name="worker_slots_busy", label=queue, value=sum(node.busy for node in mine))
    held_by = slots_by_tenant(reading)
    for queue in ("cpu", "gpu"):
        slots = [found.slots for found in held_by if found.queue == queue]
        yield Figure(name="tenants_busy", label=queue, value=len(slots))
        yield Figure(name="tenant_slots_most", label=queue, value=max(slots, default=0))
    yield Figure(name="outbox_unplanned", value=reading.execute(_UNPLANNED).scalar_one())
    pending = reading.execute(_PENDING).one()
    yield Figure(name="deliveries_pending", value=pending.n)
    yield Figure(name="deliveries_oldest_seconds", value=_age(reading, pending.next_at))
    yield Figure(name="deliveries_dead", value=reading.execute(_DEAD).scalar_one())
    yield Figure(name="records_overdue", value=reading.execute(_OVERDUE).scalar_one())
    begun, quarantined = count_unfinished(reading)
    yield Figure(name="judgings_unfinished", value=begun)
    yield Figure(name="judgings_quarantined", value=quarantined)
    yield from _size(reading, database)


def _of_the_last_hour(reading: Transaction) -> Iterator[Figure]:
    accepted = reading.execute(_ACCEPTED).all()
    by_status = {row.status: row.runs for row in accepted}
    for status in runs.NEXT:
        yield Figure(name="runs_hour", label=status, value=by_status.get(status, 0))
    attempts = reading.execute(_ATTEMPTS).one()
    yield Figure(name="lease_expiries_hour", value=attempts.lost)
    yield Figure(name="sandbox_failures_hour", value=attempts.broke)
    yield Figure(name="retries_hour", value=attempts.retries)
    for name in ("snapshots", "record_bytes", "findings"):
        yield Figure(name=f"{name}_hour", value=sum(int(getattr(row, name)) for row in accepted))


def _age(reading: Transaction, since: Any) -> float:
    return 0.0 if since is None else max(0.0, seconds_since(reading, since))


def _size(reading: Transaction, database: Database) -> Iterator[Figure]:
    if not database.sqlite:
        yield Figure(name="months_ahead", value=partitions.months_ahead(reading))
        size = reading.execute(sa.text("select pg_database_size(current_database())")).scalar_one()
        yield Figure(name="database_bytes", value=size)
        return
    page, free = (reading.execute(sa.text(f"PRAGMA {name}")).scalar_one() for name in ("page_size", "freelist_count"))
    path = Path(database.url.database or "")
    files = (path, path.with_name(f"{path.name}-wal"))
    yield Figure(name="database_bytes", value=sum(file.stat().st_size for file in files if file.exists()))
    yield Figure(name="database_free_bytes", value=free * page)
