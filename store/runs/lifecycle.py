"""The life of a run, told in one place: submit, look, claim, keep, cancel, give back, expire, forget.

`store.runs.states` holds the state table `NEXT`, and `store.runs.transitions` is the only writer of `run.status`;
these functions are all the ways in. Those that take a `Transaction` are one step of the caller's; those that take the
`Database` open their own, short ones. `store.runs.completion` ends a run.
"""

from __future__ import annotations

from store.access.quotas import QuotaExceeded
from store.runs.claims import Beat, claim, heartbeat
from store.runs.expiry import Depth, Expired, depths, expire_leases, expire_queued, release, request_cancel
from store.runs.model import (
    ENDED,
    Claim,
    FencedOut,
    FindingCounts,
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
from store.runs.owner_changes import change, forget, program_of
from store.runs.reading.run_rows import get, page
from store.runs.states import NEXT
from store.runs.submission import Queued, QueueFull, enqueue, submit

__all__ = [
    "ENDED",
    "NEXT",
    "Beat",
    "Claim",
    "Depth",
    "Expired",
    "FencedOut",
    "FindingCounts",
    "Origin",
    "Outcome",
    "Queue",
    "QueueFull",
    "Queued",
    "QuotaExceeded",
    "RecordShort",
    "RecordState",
    "RunError",
    "RunKey",
    "RunPage",
    "RunRow",
    "Status",
    "Submission",
    "change",
    "claim",
    "depths",
    "enqueue",
    "expire_leases",
    "expire_queued",
    "forget",
    "get",
    "heartbeat",
    "page",
    "program_of",
    "release",
    "request_cancel",
    "submit",
]
