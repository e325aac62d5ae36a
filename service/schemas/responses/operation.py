"""Responses about projects, workers, queues and usage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from service.web.listing import Listing


@dataclass(frozen=True, kw_only=True)
class ApiIndex:
    """Addresses by name: `openapi`, `reference`, and each list below `/v1`. version: of the service."""

    version: str
    links: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class ProjectTold:
    """A project.

    Attributes:
        settings: Those of judging in `[tool.backprobe]`; its runs are judged by them unless they bring their own.
        keep_days: Days that records are kept; null: as the tenant says.
        repository: Where issues about it are filed; null: not known.
        archived_at: Put away: it takes no more runs; null: in use.
    """

    id: str
    name: str
    settings: dict[str, Any]
    keep_days: int | None
    repository: str | None
    created_at: str
    archived_at: str | None
    links: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class ProjectList(Listing[ProjectTold]):
    """Projects, oldest first."""


@dataclass(frozen=True, kw_only=True)
class WorkerTold:
    """A worker that beats.

    Attributes:
        node: host:pid:nonce; null: not the caller's to know. slots: runs that it can hold. busy: that it holds; null as
            node. draining: It takes no more runs. sandbox: whether it can run something now: `ready`, `starting` or
            `broken`. broken: why not; null as node, and where nothing is wrong. heartbeat_seconds: since it beat last.
    """

    id: str
    node: str | None
    queues: list[str]
    levels: list[str]
    devices: list[str]
    versions: dict[str, str]
    slots: int
    busy: int | None
    draining: bool
    sandbox: Literal["ready", "starting", "broken"]
    broken: str | None
    heartbeat_seconds: float


@dataclass(frozen=True, kw_only=True)
class WorkerList(Listing[WorkerTold]):
    """Workers, by id."""


@dataclass(frozen=True, kw_only=True)
class QueueTold:
    """One queue: runs queued, those that a worker may take now, runs running, age of the oldest queued one."""

    queue: str
    queued: int
    claimable: int
    running: int
    oldest_seconds: float


@dataclass(frozen=True, kw_only=True)
class QueuesTold:
    """The queues; `of`: service, tenant or project, whose runs are counted."""

    of: str
    queues: list[QueueTold]


@dataclass(frozen=True, kw_only=True)
class DayTold:
    """Runs accepted on one day (UTC), and what they have used by now."""

    day: str
    runs: int
    wall_seconds: float
    gpu_seconds: float
    snapshots: int
    record_bytes: int


@dataclass(frozen=True, kw_only=True)
class UsageTold:
    """Days with runs, oldest first, and their sum."""

    items: list[DayTold]
    total: DayTold
