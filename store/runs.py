"""The life of a run, told in one place: submit, look, claim, keep, cancel, give back, expire.

`store.life` holds the state table and is the only writer of `run.status`; these functions are all ways in. Functions
that take a `Transaction` are one step of the caller's; those that take the `Database` open their own, short ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from store.run import (
    ENDED,
    LEVELS,
    Claim,
    FencedOut,
    FindingCounts,
    Level,
    Origin,
    Outcome,
    Queue,
    RecordShort,
    RecordState,
    RunError,
    RunKey,
    RunPage,
    RunRow,
    Status,
    Submission,
)
from store.session import Database, Transaction

__all__ = [
    "ENDED",
    "LEVELS",
    "Beat",
    "Claim",
    "Depth",
    "Expired",
    "FencedOut",
    "FindingCounts",
    "Level",
    "Origin",
    "Outcome",
    "Queue",
    "RecordShort",
    "RecordState",
    "RunError",
    "RunKey",
    "RunPage",
    "RunRow",
    "Status",
    "Submission",
    "claim",
    "depths",
    "expire_leases",
    "expire_queued",
    "get",
    "heartbeat",
    "page",
    "release",
    "request_cancel",
    "submit",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """What a heartbeat hears."""

    cancel_requested: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Expired:
    """What became of the runs whose lease had run out: public ids."""

    requeued: tuple[str, ...]
    lost: tuple[str, ...]
    canceled: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """What waits in one queue: runs claimable now, runs queued at all, age of the oldest in seconds."""

    queue: Queue
    claimable: int
    queued: int
    oldest_seconds: float


def submit(transaction: Transaction, submission: Submission) -> RunRow:
    """Queue a run: its snippet is found by hash or stored, a `queued` event written. Publish the wake-up after commit.

    Raises:
        KeyError: `entry` is not one of `files`.
    """
    raise NotImplementedError


def get(transaction: Transaction, public_id: str, *, tenant_id: int = 1) -> RunRow | None:
    """One run by its public id, with its place in the queue; None: no such run of this tenant."""
    raise NotImplementedError


def page(
    transaction: Transaction,
    *,
    tenant_id: int = 1,
    after: int | None = None,
    limit: int = 100,
    status: Sequence[Status] = (),
    queue: Queue | None = None,
    labels: Mapping[str, str] | None = None,
) -> RunPage:
    """Runs, newest first, by keyset: no run comes twice or is left out, whatever is submitted meanwhile.

    Args:
        after: `RunPage.next` of the page before; None: the first page.
        status: Any of these; empty: all. labels: all of these.
    """
    raise NotImplementedError


def claim(
    database: Database,
    worker: str,
    *,
    queue: Queue = "cpu",
    lease_seconds: float = 30.0,
    levels: Sequence[Level] = ("none",),
    devices: Sequence[str] = ("cpu",),
) -> Claim | None:
    """Take the next run of a queue, fairly among tenants; None: nothing that this worker may run is waiting.

    Args:
        worker: `worker_node.id` of the one that takes it.
        levels: Isolation levels that it really offers: a run is taken if its least level is among them. List all
            that are at most as strong as the strongest.
        devices: Device classes that it offers.
    """
    raise NotImplementedError


def heartbeat(database: Database, claim: Claim, *, lease_seconds: float | None = None) -> Beat:
    """Renew the lease by `lease_seconds` (the claim's by default) from the database's now.

    Raises:
        FencedOut: another owns the run, or it has ended. Kill the child.
    """
    raise NotImplementedError


def request_cancel(transaction: Transaction, public_id: str, *, tenant_id: int = 1) -> RunRow | None:
    """Ask for a run's end. Queued: it is canceled here and now. Running: the flag is set, its worker hears it.

    Ended: nothing changes. Returns the run as it then is; None: no such run.
    """
    raise NotImplementedError


def release(
    database: Database,
    claim: Claim,
    *,
    outcome: Literal["released", "sandbox-broke"] = "released",
    reason: str = "",
) -> Status:
    """Give a claimed run back, unfinished.

    `released` (the worker shuts down): queued again at once, and the attempt is not counted. `sandbox-broke`: queued
    again after a pause if attempts are left, else lost. A run whose cancel was asked for is canceled instead.

    Returns:
        The status that the run has now.

    Raises:
        FencedOut: another owns the run, or it has ended.
    """
    raise NotImplementedError


def expire_leases(database: Database, *, limit: int = 100) -> Expired:
    """Take back runs whose lease has run out: queued again after min(2^attempt, 60) s, lost, or canceled if asked."""
    raise NotImplementedError


def expire_queued(database: Database, *, limit: int = 100) -> tuple[str, ...]:
    """Lose the runs that no worker came for before their queue deadline; their public ids."""
    raise NotImplementedError


def depths(transaction: Transaction) -> tuple[Depth, ...]:
    """What waits, one entry per queue, also for an empty one."""
    raise NotImplementedError
