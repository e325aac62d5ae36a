"""What a tenant may have of the slots of live workers and of a worker's memory, as SQL for both databases.

1. A tenant has at most three quarters of the live slots of a queue, and one at least, if there are other open tenants.
2. A worker takes a run only if it has the memory that the run's limits promise. Of that memory, too, a tenant has
   only a part if there are other open tenants; a tenant that has none of it may have one run.
3. Both hold whether others wait or not: nothing ends a run before its time, so a slot that is wanted comes too late.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from store.database.session import Transaction
from store.runs.limits import LIMITS, WARM_BYTES
from store.tables import Now, run, tenant, worker_node

SILENT_SECONDS: Final = 60.0
"""A worker that has not beaten for so long counts as gone."""

_queue: Final = sa.bindparam("of_queue", type_=sa.Text())
_worker: Final = sa.bindparam("worker", type_=sa.Text())
_taken: Final = run.alias("taken")
_other: Final = tenant.alias("other")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRoom:
    """Memory of one worker, for its runs.

    Attributes:
        free_bytes: What the runs that it holds leave.
        tenant_bytes: What all runs of one tenant may have of it, if there are other tenants.
    """

    free_bytes: int = 1 << 62
    tenant_bytes: int = 1 << 62


def promised_bytes(runs: Any) -> sa.ColumnElement[int]:
    """Return `Limits.promised_bytes` of a row of `runs`, which is `run` or an alias of it."""
    stored = [
        sa.func.coalesce(sa.cast(runs.c.limits[name].as_string(), sa.BigInteger()), LIMITS[name].default)
        for name in ("memory_bytes", "disk_bytes")
    ]
    return stored[0] + stored[1] + WARM_BYTES


def may_take_slot(taken: Any, slots: Any, has_others: Any) -> sa.ColumnElement[bool]:
    """Return the condition that a tenant may have one more slot.

    Args:
        taken: Slots that it has; slots: that live workers of the queue have together, 0: not known.
        has_others: There are other open tenants.
    """
    return sa.or_(taken == 0, 4 * (taken + 1) <= 3 * slots, slots == 0, sa.not_(has_others))


def may_take_memory(held: Any, promised: Any, has_others: Any) -> sa.ColumnElement[bool]:
    """Return the condition that a worker (`:free_bytes`, `:tenant_bytes`) has memory for one more run of a tenant.

    Args:
        held: Bytes that the tenant's runs have of it; promised: bytes of the run.
        has_others: There are other open tenants.
    """
    within = held + promised <= sa.bindparam("tenant_bytes", type_=sa.BigInteger())
    free = sa.bindparam("free_bytes", type_=sa.BigInteger())
    return sa.and_(promised <= free, sa.or_(within, held == 0, sa.not_(has_others)))


def live_slots() -> sa.ScalarSelect[int]:
    """Return the slots that the live workers of the queue `:of_queue` have together."""
    return (
        sa.select(sa.func.coalesce(sa.func.sum(worker_node.c.slots), 0))
        .where(
            worker_node.c.heartbeat_at > Now(-SILENT_SECONDS),
            sa.not_(worker_node.c.draining),
            sa.cast(worker_node.c.queues, sa.Text()).contains(sa.literal('"').concat(_queue).concat('"')),
            sa.cast(worker_node.c.levels, sa.Text()) != "[]",
        )
        .scalar_subquery()
    )


def standing(tenant_id: sa.ColumnElement[int]) -> sa.Subquery:
    """Return one row: what the tenant has of the queue and of the worker `:worker`, the live slots, whether others are.

    The tenant is compared in the sums, not in WHERE: SQLite would take the index of all runs that a tenant ever had.
    """
    its = _taken.c.tenant_id == tenant_id
    in_queue = sa.case((sa.and_(its, _taken.c.queue == _queue), 1), else_=0)
    on_worker = sa.case((sa.and_(its, _taken.c.lease_owner == _worker), promised_bytes(_taken)), else_=0)
    return (
        sa.select(
            sa.func.coalesce(sa.func.sum(in_queue), 0).label("taken"),
            sa.func.coalesce(sa.func.sum(on_worker), 0).label("held"),
            live_slots().label("slots"),
            has_others(tenant_id).label("has_others"),
        )
        .where(_taken.c.status == sa.literal_column("'running'"), _taken.c.origin != "watched")
        .subquery("standing")
    )


def has_others(tenant_id: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
    """Return the condition that there are open tenants beside this one."""
    return (
        sa.select(sa.literal(1))
        .select_from(_other)
        .where(_other.c.id != tenant_id, _other.c.disabled_at.is_(None))
        .correlate_except(_other)
        .exists()
    )


def shares_with_others(transaction: Transaction, tenant_id: int) -> bool:
    """Return whether there are open tenants beside this one, to whom it leaves a part."""
    return bool(transaction.execute(sa.select(has_others(sa.literal(tenant_id)))).scalar_one())
