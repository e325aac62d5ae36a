"""The workers as the database knows them: a row per process, alive as long as it beats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from store.run import Level, Queue
from store.session import Transaction

SILENT_SECONDS = 60.0
"""A worker that has not beaten for so long counts as gone."""


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
    levels: tuple[Level, ...]
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
    """What the live, not draining workers of a queue offer together: levels and devices."""

    levels: tuple[Level, ...]
    devices: tuple[str, ...]
    workers: int
    idle_slots: int


def beat(transaction: Transaction, node: WorkerNode) -> None:
    """Write a worker's row, or renew it, with the database's now as its heartbeat."""
    raise NotImplementedError


def leave(transaction: Transaction, worker: str) -> None:
    """A worker ends in good order: its row goes."""
    raise NotImplementedError


def live(transaction: Transaction, *, silent_seconds: float = SILENT_SECONDS) -> tuple[WorkerNode, ...]:
    """The workers that have beaten lately, by id."""
    raise NotImplementedError


def offered(transaction: Transaction, queue: Queue, *, silent_seconds: float = SILENT_SECONDS) -> Offer:
    """What a run of this queue could get now."""
    raise NotImplementedError


def drop_silent(transaction: Transaction, *, silent_seconds: float = SILENT_SECONDS) -> Sequence[str]:
    """Remove the rows of workers that are gone; their ids. Their runs come back by their leases."""
    raise NotImplementedError
