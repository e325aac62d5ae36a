"""What a tenant used, by day, and which of its runs wait and run now. Counted from its runs, which stay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from store.database.session import Transaction
from store.runs.expiry import depths
from store.runs.transitions import in_status
from store.tables import run

_DAY: Final[dict[str, sa.ColumnElement[str]]] = {
    "postgresql": sa.literal_column("to_char(run.created_at at time zone 'UTC', 'YYYY-MM-DD')", sa.Text()),
    "sqlite": sa.literal_column("substr(run.created_at, 1, 10)", sa.Text()),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """Runs accepted on one day (UTC), and what they have used by now.

    Attributes:
        day: `2026-11-20`. wall_seconds: of their programs. gpu_seconds: of these, of runs of the queue gpu.
        snapshots: In their records. record_bytes: of their records; one that was deleted counts no more, one that
            expired does.
    """

    day: str
    runs: int
    wall_seconds: float
    gpu_seconds: float
    snapshots: int
    record_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """One queue: runs queued, those of them that a worker may take now, runs running, age of the oldest queued one."""

    queue: str
    queued: int
    claimable: int
    running: int
    oldest_seconds: float


def by_day(
    transaction: Transaction, *, tenant_id: int = 1, project_id: int | None = None, first: str, last: str
) -> tuple[Day, ...]:
    """Days with runs, oldest first.

    Args:
        project_id: Only its runs; None: all of the tenant's.
        first, last: `2026-11-01`: the first day and the last one.
    """
    day = _DAY[transaction.dialect.name].label("day")
    wall = sa.func.coalesce(run.c.wall_seconds, 0.0)
    query = sa.select(
        day,
        sa.func.count().label("runs"),
        sa.func.sum(wall).label("wall_seconds"),
        sa.func.sum(sa.case((run.c.queue == "gpu", wall), else_=0.0)).label("gpu_seconds"),
        sa.func.sum(run.c.snapshots).label("snapshots"),
        sa.func.sum(run.c.record_bytes).label("record_bytes"),
    ).where(
        run.c.tenant_id == tenant_id,
        run.c.created_at >= f"{first}T00:00:00.000Z",
        run.c.created_at <= f"{last}T23:59:59.999Z",
    )
    if project_id is not None:
        query = query.where(run.c.project_id == project_id)
    return tuple(_day(row) for row in transaction.execute(query.group_by(day).order_by(day)))


def _day(row: Any) -> Day:
    return Day(
        day=row.day,
        runs=row.runs,
        wall_seconds=round(float(row.wall_seconds), 3),
        gpu_seconds=round(float(row.gpu_seconds), 3),
        snapshots=int(row.snapshots),
        record_bytes=int(row.record_bytes),
    )


def queues(
    transaction: Transaction, *, tenant_id: int | None = None, project_id: int | None = None
) -> tuple[QueueState, ...]:
    """Each queue as it stands: of one tenant, of one project, or (None) of the whole service."""
    running = sa.select(run.c.queue, sa.func.count().label("n")).where(in_status("running"), run.c.origin != "watched")
    running = running.group_by(run.c.queue)
    if tenant_id is not None:
        running = running.where(run.c.tenant_id == tenant_id)
    if project_id is not None:
        running = running.where(run.c.project_id == project_id)
    counts: dict[str, int] = {row.queue: row.n for row in transaction.execute(running)}
    return tuple(
        QueueState(
            queue=depth.queue,
            queued=depth.queued,
            claimable=depth.claimable,
            running=counts.get(depth.queue, 0),
            oldest_seconds=round(depth.oldest_seconds, 1),
        )
        for depth in depths(transaction, tenant_id=tenant_id, project_id=project_id)
    )
