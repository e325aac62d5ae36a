"""The end of a run: one fenced transaction writes status, record, snapshots, findings, attempt and event, or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from store.run import Claim, RunError
from store.session import Database

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules import Judgement, WhyNone


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """What a program printed to stdout or stderr.

    Attributes:
        tail: The last of it, decoded with errors replaced. total_bytes: of all of it.
    """

    tail: str = ""
    total_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a run ended, in facts of the trusted side only.

    Attributes:
        status: Where it goes. `lost` only if ours broke and no attempt is worth making (else `runs.release`).
        error: None exactly for `succeeded`.
        limit: Name of the limit that stopped it. signal: that killed the child.
        isolation: What it really ran under: `{"level": "none", ...}`; the store adds `demanded`.
        stdout, stderr: Tails.
        torch: The child's torch version, from the record's header.
    """

    status: Literal["succeeded", "failed", "exceeded", "canceled", "lost"]
    error: RunError | None = None
    exit_code: int | None = None
    signal: int | None = None
    limit: str | None = None
    wall_seconds: float | None = None
    cpu_seconds: float | None = None
    max_rss_bytes: int | None = None
    isolation: Mapping[str, Any] | None = None
    stdout: Stream = Stream()
    stderr: Stream = Stream()
    torch: str | None = None


def finish(
    database: Database,
    claim: Claim,
    ending: Ending,
    record: Record | None,
    judgement: Judgement | None,
    whys: Mapping[int, WhyNone] | None = None,
) -> bool:
    """End a run and make its record visible, all at once.

    Args:
        record: What came of the record; None: nothing, not even its header.
        judgement: None: not judged.
        whys: Why tensors have no gradient, by tensor (`backprobe.rules.why_none`).

    Returns:
        True: ended by this call. False: this very attempt had ended it before (a commit whose answer was lost).

    Raises:
        FencedOut: the attempt is stale; nothing was written.
        BadRecord: a number in the record does not fit its column; nothing was written. Finish again without the record.
    """
    raise NotImplementedError
