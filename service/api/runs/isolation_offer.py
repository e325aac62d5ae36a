"""Whether a live worker can give what a run asks for; if not, the run is refused, and never run with less."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backprobe.isolation import ISOLATION_LEVELS
from service.api.runs.limit_maxima import allowed_limits, demand_memory
from service.auth.caller import caller
from service.context import context
from service.problems.errors import Place, Problem
from store.admin import workers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backprobe.isolation import IsolationLevel
    from service.schemas.requests import RunAsked
    from store.admin.workers import Offer
    from store.database.session import Transaction
    from store.runs.limits import Limits
    from store.runs.model import Queue


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRequirements:
    """The requirements of a run on its worker.

    Attributes:
        device: cpu or cuda, as the request names it.
        isolation: The least level.
        processes, disk_bytes: Limits that were asked for by name; None: the default, which asks for no level.
        limits: All that it will run with.
        device_class: A kind of device that a worker must offer; None: any.
    """

    queue: Queue
    device: str
    isolation: IsolationLevel
    processes: int | None
    disk_bytes: int | None
    limits: Limits
    device_class: str | None = None


def _find_demanded_level(asked: WorkerRequirements, levels: Sequence[IsolationLevel]) -> tuple[IsolationLevel, str]:
    """Return the least level at which a run can have what it asks for, and the limit that demands it (or "").

    Several processes need namespaces of their own; a folder to write to is at every level but `process`.
    """
    if (asked.processes or 1) > 1 and ISOLATION_LEVELS.index(asked.isolation) < ISOLATION_LEVELS.index("namespace"):
        return "namespace", "processes"
    best = max(levels, key=ISOLATION_LEVELS.index)
    if (
        asked.disk_bytes
        and best != "none"
        and ISOLATION_LEVELS.index(asked.isolation) <= ISOLATION_LEVELS.index("process")
    ):
        return "namespace", "disk_bytes"
    return asked.isolation, ""


def _check_device_class(asked: WorkerRequirements, offer: Offer) -> None:
    """Refuse a kind of device that no live worker of the queue has: the run would wait for its queue deadline."""
    if asked.device_class is None or asked.device_class in offer.devices:
        return
    offered_now = ", ".join(offer.devices) or "none"
    detail = (
        f"No live worker of the queue {asked.queue} has the device class {asked.device_class!r};"
        f" those that live offer: {offered_now}."
    )
    place = Place(pointer="#/device_class", code="unknown-device", detail=detail)
    raise Problem("unknown-device", detail, places=(place,))


def least_for(asked: RunAsked, queue: Queue) -> IsolationLevel:
    """Return the least level at which a submitted run, alone or in an audit, has what it asks for.

    Raises:
        Problem: as `choose_level`.
    """
    wanted = WorkerRequirements(
        queue=queue,
        device=asked.device,
        isolation=asked.isolation,
        processes=asked.limits.processes,
        disk_bytes=asked.limits.disk_bytes,
        limits=allowed_limits(asked.limits.model_dump(exclude_none=True)),
        device_class=asked.device_class,
    )
    with context().database.read() as transaction:
        return choose_level(transaction, wanted)


def choose_level(transaction: Transaction, asked: WorkerRequirements) -> IsolationLevel:
    """Return the least level demanded. While no worker is alive, only `none` is known to be offered.

    Raises:
        Problem: `isolation-unavailable`, `unknown-device`: no live worker can give that; `invalid-request`: no live
            worker has the memory.
    """
    queue = asked.queue
    offer = workers.combine_offers(transaction, queue)
    demand_memory(transaction, asked.limits, offer, caller().tenant_id)
    if asked.device != "cpu" and not offer.workers and workers.live(transaction):
        detail = f"No live worker has the device {asked.device}; those that live serve the CPU only."
        raise Problem(
            "unknown-device", detail, places=(Place(pointer="#/device", code="unknown-device", detail=detail),)
        )
    _check_device_class(asked, offer)
    levels = offer.levels or ("none",)
    least, limit = _find_demanded_level(asked, levels)
    enough = ISOLATION_LEVELS.index(least) <= max(ISOLATION_LEVELS.index(level) for level in levels)
    grouped = (asked.processes or 1) == 1 or offer.cgroups
    if enough and grouped:
        return least
    who = f"Live workers of the queue {queue} offer: {', '.join(levels)}"
    if enough:
        who += ", and none of them can make cgroups; `backprobe doctor` says why"
    if offer.workers and not offer.levels:
        who = f"No live worker of the queue {queue} can execute a run now; /readyz and `backprobe doctor` say why"
    elif not offer.workers:
        who = f"No worker of the queue {queue} is alive, so no level but none is known to be offered"
    detail = f"{who}. Asked for was {least}{f', by `limits.{limit}`' if limit else ''}."
    place = Place(pointer=f"#/limits/{limit}" if limit else "#/isolation", code="isolation-unavailable", detail=detail)
    raise Problem("isolation-unavailable", detail, places=(place,))
