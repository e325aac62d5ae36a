"""Which tenants hold worker slots now, and how many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

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


_count: Final = sa.func.count().label("slots")
_HELD: Final = (
    sa.select(run.c.queue, tenant.c.public_id, tenant.c.name, _count)
    .join_from(run, tenant, tenant.c.id == run.c.tenant_id)
    .where(in_status("running"), run.c.origin != "watched")
    .group_by(run.c.queue, tenant.c.id, tenant.c.public_id, tenant.c.name)
    .order_by(run.c.queue, _count.desc(), tenant.c.id)
)


def slots_by_tenant(reading: Transaction) -> tuple[TenantSlots, ...]:
    """Return the tenants that hold slots, by queue; in each queue the one with the most first."""
    return tuple(
        TenantSlots(queue=row.queue, tenant=row.public_id, name=row.name, slots=row.slots)
        for row in reading.execute(_HELD)
    )
