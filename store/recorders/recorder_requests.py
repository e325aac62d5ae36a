"""What a recorder asks for and sends, and why it is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

LEASE_SECONDS: Final = 24 * 3600.0
"""Silence after which a recorder is taken to be gone, unless the operator says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What a recorder asks for. Everything was checked before: the store only keeps it.

    Attributes:
        public_id: The run's, made by the client.
        asked: SHA-256 of what was asked, by which the same request is known again.
        capture: tier, and every how many steps. environment: where the job runs, text by name.
        lease_seconds: Silence after which the recorder is taken to be gone.
        project_id: Where the run goes; sees_project: the only project that the caller sees, None: all of the tenant's.
    """

    public_id: str
    asked: bytes
    capture: Mapping[str, Any]
    environment: Mapping[str, str]
    labels: Mapping[str, str]
    created_by: str
    tenant_id: int = 1
    project_id: int = 1
    sees_project: int | None = None
    traceparent: str | None = None
    lease_seconds: float = LEASE_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class SentFrame:
    """One frame, checked by `backprobe.record.frame_kind`: `kind` is header, end or a table; `rows` are in it."""

    body: bytes
    kind: str
    rows: int


class RecorderError(Exception):
    """A recorder asked for what cannot be; nothing was written, and the message says why."""


class Unknown(RecorderError):
    """The caller sees no such run; somebody else may have it."""


class RunEnded(RecorderError):
    """The run takes no more: it has ended, or its end was asked for."""


class Differs(RecorderError):
    """There is such a run, or such a frame, and it is another one."""


class NotWatched(Differs):
    """There is such a run, and no recorder made it."""


class TimeRefused(RecorderError):
    """The time in the id is too far from the server's."""


class Missing(RecorderError):
    """Frames before this one have not come; `wanted` is the number of the next one that is taken."""

    def __init__(self, said: str, wanted: int) -> None:
        super().__init__(said)
        self.wanted = wanted


class TooLarge(RecorderError):
    """The run would have more bytes, rows or frames than one may."""


class Misplaced(RecorderError):
    """The frame is a good one, and cannot stand there: `code` as `BadRecord` has it."""

    def __init__(self, code: str, said: str) -> None:
        super().__init__(said)
        self.code = code
