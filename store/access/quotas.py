"""What a tenant may have, and has: runs queued, runs running, bytes of records kept, GPU seconds of this month."""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import sqlalchemy as sa

from store.moves import in_status
from store.session import Transaction
from store.tables import Time, run, tenant

Name = Literal["queued", "running", "record_bytes", "gpu_seconds", "recorders"]

SURE_SECONDS: Final = 30.0
"""How long a sum of bytes far below what is allowed is taken to hold: it is over all runs of the tenant."""

_NEAR: Final = 0.9

_UNITS: Final = {
    "queued": "runs queued",
    "running": "runs running",
    "record_bytes": "bytes of records",
    "gpu_seconds": "GPU seconds this month",
    "recorders": "recorders at work",
}
_its: Final = run.c.tenant_id == sa.bindparam("its_tenant")
_ALLOWED: Final = sa.select(
    tenant.c.max_queued.label("queued"),
    tenant.c.max_running.label("running"),
    tenant.c.max_record_bytes.label("record_bytes"),
    tenant.c.max_gpu_seconds.label("gpu_seconds"),
).where(tenant.c.id == sa.bindparam("its_tenant"))
_COUNT: Final = sa.select(sa.func.count()).select_from(run)
_USED: Final = {
    "queued": _COUNT.where(_its, run.c.queue.in_(("cpu", "gpu")), in_status("queued")),
    "running": _COUNT.where(_its, in_status("running"), run.c.origin != "watched"),
    "record_bytes": sa.select(sa.func.coalesce(sa.func.sum(run.c.record_bytes), 0)).where(
        _its, sa.or_(run.c.record_state.in_(("partial", "whole")), in_status("running"))
    ),
    "gpu_seconds": sa.select(sa.func.coalesce(sa.func.sum(run.c.wall_seconds), 0.0)).where(
        _its, run.c.queue == "gpu", run.c.created_at >= sa.bindparam("month", type_=Time())
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """One of them: how much there is, and may be.

    Attributes:
        name: queued and record_bytes: beyond it a submit is refused. running: further runs wait in the queue.
            record_bytes: with the frames of recorders at work. gpu_seconds: beyond it a submit to the queue gpu is
            refused until the month (UTC) is over. recorders: at a time, the same for all; it is not told with the rest.
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
    names: tuple[Name, ...] = ("queued", "running", "record_bytes", "gpu_seconds")
    return tuple(
        Quota(name=name, used=_used(transaction, name, tenant_id), allowed=getattr(allowed, name))
        for name in names
        if getattr(allowed, name) is not None
    )


def _used(transaction: Transaction, name: Name, tenant_id: int) -> int:
    which = {"its_tenant": tenant_id}
    month = {"month": f"{datetime.datetime.now(datetime.UTC):%Y-%m}-01T00:00:00.000Z"} if name == "gpu_seconds" else {}
    return int(transaction.execute(_USED[name], which | month).scalar_one())


def demand_gpu(transaction: Transaction, *, tenant_id: int = 1) -> None:
    """Go on if the tenant's runs of this month that have ended left GPU seconds for another.

    Raises:
        QuotaExceeded: `gpu_seconds`.
    """
    allowed = transaction.execute(_ALLOWED, {"its_tenant": tenant_id}).one().gpu_seconds
    if allowed is not None and (used := _used(transaction, "gpu_seconds", tenant_id)) >= allowed:
        raise QuotaExceeded("gpu_seconds", used, allowed)


class Room:
    """Is there room for another record? One per process: far from the quota, a sum is not made for each submit."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._summed: dict[int, tuple[float, int, int]] = {}
        self._knowing = threading.Lock()

    def demand(self, transaction: Transaction, *, tenant_id: int = 1) -> None:
        """Go on if the tenant's records leave room.

        Raises:
            QuotaExceeded: `record_bytes`.
        """
        allowed = transaction.execute(_ALLOWED, {"its_tenant": tenant_id}).one().record_bytes
        with self._knowing:
            at, used, of = self._summed.get(tenant_id, (0.0, 0, -1))
        if of != allowed or used >= _NEAR * allowed or self._clock() - at > SURE_SECONDS:
            used = int(transaction.execute(_USED["record_bytes"], {"its_tenant": tenant_id}).scalar_one())
            with self._knowing:
                self._summed[tenant_id] = (self._clock(), used, allowed)
        if used >= allowed:
            raise QuotaExceeded("record_bytes", used, allowed)
