"""What a tenant may have, and has: runs queued, runs running, bytes stored, GPU seconds of this month."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Final, Literal

import sqlalchemy as sa

from store.access import shares
from store.database.session import Transaction
from store.runs.transitions import in_status
from store.tables import Time, run, tenant

Name = Literal["queued", "running", "record_bytes", "stored_bytes", "gpu_seconds", "recorders"]

_UNITS: Final = {
    "queued": "runs queued",
    "running": "runs running",
    "record_bytes": "bytes of records",
    "stored_bytes": "bytes stored",
    "gpu_seconds": "GPU seconds this month",
    "recorders": "recorders at work",
}
_its: Final = run.c.tenant_id == sa.bindparam("its_tenant")
_ALLOWED: Final = sa.select(
    tenant.c.max_queued.label("queued"),
    tenant.c.max_running.label("running"),
    tenant.c.max_record_bytes.label("stored_bytes"),
    tenant.c.max_gpu_seconds.label("gpu_seconds"),
).where(tenant.c.id == sa.bindparam("its_tenant"))
_COUNT: Final = sa.select(sa.func.count()).select_from(run)
_USED: Final = {
    "queued": _COUNT.where(_its, run.c.queue.in_(("cpu", "gpu")), in_status("queued")),
    "running": _COUNT.where(_its, in_status("running"), run.c.origin != "watched"),
    "gpu_seconds": sa.select(sa.func.coalesce(sa.func.sum(run.c.wall_seconds), 0.0)).where(
        _its, run.c.queue == "gpu", run.c.created_at >= sa.bindparam("month", type_=Time())
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """One of them: how much there is, and may be.

    Attributes:
        name: queued and stored_bytes: beyond it a submit is refused. running: further runs wait in the queue.
            record_bytes: of stored_bytes, those of records, with the frames of recorders at work. gpu_seconds: beyond
            it a submit to the queue gpu is refused until the month (UTC) is over. recorders: at a time, the same for
            all; it is not told with the rest.
    """

    name: Name
    used: int
    allowed: int


class QuotaExceeded(Exception):
    """This tenant has as much of something as it may; the message says of what, how much, and what is allowed."""

    def __init__(self, name: Name, used: int, allowed: int) -> None:
        super().__init__(f"quota {name}: {used} {_UNITS[name]}, {allowed} allowed")
        self.name, self.used, self.allowed = name, used, allowed


def quotas(transaction: Transaction, *, tenant_id: int = 1) -> tuple[Quota, ...]:
    """All of them, as they stand; one without a limit is not there."""
    allowed = transaction.execute(_ALLOWED, {"its_tenant": tenant_id}).one()
    stored = shares.stored_bytes_by_kind(transaction, tenant_id=tenant_id)
    had: dict[Name, tuple[int, int | None]] = {
        "queued": (_count_used(transaction, "queued", tenant_id), allowed.queued),
        "running": (_count_used(transaction, "running", tenant_id), allowed.running),
        "record_bytes": (stored.get("records", 0), allowed.stored_bytes),
        "stored_bytes": (sum(stored.values()), allowed.stored_bytes),
        "gpu_seconds": (_count_used(transaction, "gpu_seconds", tenant_id), allowed.gpu_seconds),
    }
    return tuple(Quota(name=name, used=used, allowed=most) for name, (used, most) in had.items() if most is not None)


def _count_used(transaction: Transaction, name: Name, tenant_id: int) -> int:
    which = {"its_tenant": tenant_id}
    month = {"month": f"{datetime.datetime.now(datetime.UTC):%Y-%m}-01T00:00:00.000Z"} if name == "gpu_seconds" else {}
    return int(transaction.execute(_USED[name], which | month).scalar_one())


def demand_gpu(transaction: Transaction, *, tenant_id: int = 1) -> None:
    """Go on if the tenant's runs of this month that have ended left GPU seconds for another.

    Raises:
        QuotaExceeded: `gpu_seconds`.
    """
    allowed = transaction.execute(_ALLOWED, {"its_tenant": tenant_id}).one().gpu_seconds
    if allowed is not None and (used := _count_used(transaction, "gpu_seconds", tenant_id)) >= allowed:
        raise QuotaExceeded("gpu_seconds", used, allowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Is there room for more of a tenant's? `most_bytes`: the cap of the database, None: it has none."""

    most_bytes: int | None = None

    def demand(self, transaction: Transaction, *, tenant_id: int = 1) -> None:
        """Go on if what the tenant stores leaves room, in its quota and in the database.

        Raises:
            QuotaExceeded: `stored_bytes`.
            DatabaseFull: the tenant has more than its share of it (`store.access.shares`).
        """
        allowed = transaction.execute(_ALLOWED, {"its_tenant": tenant_id}).one().stored_bytes
        used = sum(shares.stored_bytes_by_kind(transaction, tenant_id=tenant_id).values())
        if used >= allowed:
            raise QuotaExceeded("stored_bytes", used, allowed)
        if self.most_bytes is not None:
            shares.demand(transaction, self.most_bytes, tenant_id=tenant_id)
