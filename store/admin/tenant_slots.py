"""Which tenants have runs in the queues now: how many wait, and how many hold worker slots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from store.database.session import Transaction
from store.runs.transitions import in_status
from store.tables import run, tenant


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantSlots:
    """What one tenant holds of one queue.

    Attributes:
        tenant: Its public id. name: As the operator named it.
        slots: Runs of it that workers execute now.
    """

    queue: str
    tenant: str
    name: str
    slots: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantQueue:
    """Runs of one tenant in one queue: `queued` wait, `running` are executed. tenant, name: as of `TenantSlots`."""

    queue: str
    tenant: str
    name: str
    queued: int
    running: int


def _count_runs(status: str) -> sa.Select[Any, Any, Any, int]:
    count = sa.func.count().label("runs")
    return (
        sa.select(run.c.queue, tenant.c.public_id, tenant.c.name, count)
        .join_from(run, tenant, tenant.c.id == run.c.tenant_id)
        .where(in_status(status), run.c.origin != "watched")
        .group_by(run.c.queue, tenant.c.id, tenant.c.public_id, tenant.c.name)
        .order_by(run.c.queue, count.desc(), tenant.c.id)
    )


_RUNNING: Final = _count_runs("running")
_QUEUED: Final = _count_runs("queued")


def slots_by_tenant(reading: Transaction) -> tuple[TenantSlots, ...]:
    """Return the tenants that hold slots, by queue; in each queue the one with the most first."""
    return tuple(
        TenantSlots(queue=row.queue, tenant=row.public_id, name=row.name, slots=row.runs)
        for row in reading.execute(_RUNNING)
    )


def queue_by_tenant(reading: Transaction) -> tuple[TenantQueue, ...]:
    """Return the tenants with runs in a queue, by queue; in each queue the one with the most waiting runs first."""
    queued = {(row.queue, row.public_id, row.name): row.runs for row in reading.execute(_QUEUED)}
    running = {(row.queue, row.public_id, row.name): row.runs for row in reading.execute(_RUNNING)}
    places = sorted({*queued, *running}, key=lambda place: (place[0], -queued.get(place, 0), place[1]))
    return tuple(
        TenantQueue(
            queue=queue, tenant=public_id, name=name, queued=queued.get(place, 0), running=running.get(place, 0)
        )
        for place in places
        for queue, public_id, name in [place]
    )
