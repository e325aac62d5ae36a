"""The workers as the database knows them: a row per process, alive as long as it beats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import sqlalchemy as sa

from backprobe.isolation import ISOLATION_LEVELS, IsolationLevel
from store.access.worker_shares import SILENT_SECONDS
from store.database.session import Transaction
from store.runs.model import Queue
from store.tables import Now, worker_node

_AGE: Final[dict[str, sa.ColumnClause[Any]]] = {
    "postgresql": sa.literal_column("extract(epoch from clock_timestamp() - heartbeat_at)"),
    "sqlite": sa.literal_column("(julianday('now') - julianday(heartbeat_at)) * 86400.0"),
}
_FACTS: Final = ("queues", "levels", "devices", "versions", "slots", "busy", "draining", "probe")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerNode:
    """One worker process.

    Attributes:
        id: host:pid:nonce. levels: isolation it really offers; devices: device classes.
        slots: Runs it can hold at once; busy: that it holds.
        draining: It takes no more runs. probe: what the sandbox's canary proved.
        started_at, heartbeat_at, silent_seconds: The database's clock; ignored by `beat`.
    """

    id: str
    queues: tuple[Queue, ...]
    levels: tuple[IsolationLevel, ...]
    devices: tuple[str, ...]
    versions: Mapping[str, str] = field(default_factory=dict[str, str])
    slots: int = 1
    busy: int = 0
    draining: bool = False
    probe: Mapping[str, Any] = field(default_factory=dict[str, Any])
    started_at: str = ""
    heartbeat_at: str = ""
    silent_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What the live, not draining workers of a queue offer together.

    Attributes:
        cgroups: One of level `namespace` gives each run a cgroup, without which no run may have several processes.
        memory_bytes: What the runs of the largest of them may have together; None: none of them says.
    """

    levels: tuple[IsolationLevel, ...]
    devices: tuple[str, ...]
    workers: int
    idle_slots: int
    cgroups: bool = False
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a run of one queue gets now.

    Attributes:
        state: `ready`: a live worker executes runs; `starting`: one is proving its sandbox; `broken`: those that live
            cannot execute anything; `absent`: none lives, or those that do take no more.
        levels: At which live workers execute runs, from the least; one, unless they differ.
        why: Why no run is executed, or none at a higher level that a worker would take; in a worker's words.
    """

    state: Literal["ready", "starting", "broken", "absent"]
    levels: tuple[IsolationLevel, ...] = ()
    why: tuple[str, ...] = ()


def beat(transaction: Transaction, node: WorkerNode) -> None:
    """Write a worker's row, or renew it, with the database's now as its heartbeat."""
    facts: dict[str, Any] = {name: getattr(node, name) for name in _FACTS}
    for name in ("queues", "levels", "devices"):
        facts[name] = list(facts[name])
    for name in ("versions", "probe"):
        facts[name] = dict(facts[name])
    renewed = sa.update(worker_node).where(worker_node.c.id == node.id).values(heartbeat_at=Now(), **facts)
    if transaction.execute(renewed).rowcount == 0:
        transaction.execute(sa.insert(worker_node).values(id=node.id, started_at=Now(), heartbeat_at=Now(), **facts))


def leave(transaction: Transaction, worker: str) -> None:
    """Delete the row of a worker that ends in good order."""
    transaction.execute(sa.delete(worker_node).where(worker_node.c.id == worker))


def live(transaction: Transaction, *, silent_seconds: float = SILENT_SECONDS) -> tuple[WorkerNode, ...]:
    """List the workers that sent a heartbeat lately, by id."""
    age = _AGE[transaction.dialect.name].label("silent_seconds")
    query = sa.select(worker_node, age).where(worker_node.c.heartbeat_at > Now(-silent_seconds))
    return tuple(_node(row) for row in transaction.execute(query.order_by(worker_node.c.id)))


def _node(row: Any) -> WorkerNode:
    return WorkerNode(
        id=row.id,
        queues=tuple(row.queues),
        levels=tuple(row.levels),
        devices=tuple(row.devices),
        versions=row.versions,
        slots=row.slots,
        busy=row.busy,
        draining=row.draining,
        probe=row.probe,
        started_at=row.started_at,
        heartbeat_at=row.heartbeat_at,
        silent_seconds=max(0.0, float(row.silent_seconds)),
    )


def combine_offers(transaction: Transaction, queue: Queue, *, silent_seconds: float = SILENT_SECONDS) -> Offer:
    """Combine what the live workers of a queue offer that are not draining."""
    nodes = [
        node for node in live(transaction, silent_seconds=silent_seconds) if queue in node.queues and not node.draining
    ]
    levels = {level for node in nodes for level in node.levels}
    memory = [int(node.probe["memory_bytes"]) for node in nodes if "memory_bytes" in node.probe]
    return Offer(
        levels=tuple(level for level in ISOLATION_LEVELS if level in levels),
        devices=tuple(sorted({device for node in nodes for device in node.devices})),
        workers=len(nodes),
        idle_slots=sum(max(0, node.slots - node.busy) for node in nodes),
        memory_bytes=max(memory, default=None),
        cgroups=any(node.probe.get("cgroup") for node in nodes if "namespace" in node.levels),
    )


def standing(transaction: Transaction, queue: Queue) -> Standing:
    """Return at which levels workers execute runs of this queue now, or why they do not."""
    nodes = [node for node in live(transaction) if queue in node.queues and not node.draining]
    given = {max(node.levels, key=ISOLATION_LEVELS.index) for node in nodes if node.levels}
    told = [str(node.probe["why"]) for node in nodes if node.probe.get("why")]
    told += [str(reason) for node in nodes if node.levels for reason in node.probe.get("missed", ())]
    starts = any(node.probe.get("sandbox") == "starting" for node in nodes)
    return Standing(
        state="ready" if given else "absent" if not nodes else "starting" if starts else "broken",
        levels=tuple(level for level in ISOLATION_LEVELS if level in given),
        why=tuple(dict.fromkeys(told)),
    )


def drop_silent(transaction: Transaction, *, silent_seconds: float = SILENT_SECONDS) -> Sequence[str]:
    """Remove the rows of workers that are gone; their ids. Their runs come back by their leases."""
    gone = sa.delete(worker_node).where(worker_node.c.heartbeat_at <= Now(-silent_seconds)).returning(worker_node.c.id)
    return transaction.execute(gone).scalars().all()
