"""What the API tells: the shapes of its answers, for the document and for the tests that hold real answers against it.

Answers are made of the store's own values (`store.queries`), so their shapes are read off those classes; here stand the
shapes that the web process adds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from backprobe.rules.framework.rule import Confidence, Level
from service.schemas.responses.findings import FindingList
from service.schemas.rule_families import Family
from service.web.listing import Listing
from store.queries import BackwardCallRow, SnapshotRow, SourceLine, Streams, TensorFull, TensorRow
from store.runs.model import RunView

__all__ = ["BackwardCallRow", "SnapshotRow", "Streams", "TensorFull", "TensorRow"]


@dataclass(frozen=True, kw_only=True)
class ProblemPlace:
    """One thing that is wrong, and where: in the body (`pointer`), a `parameter` or a `header`."""

    code: str
    detail: str
    pointer: str = ""
    parameter: str = ""
    header: str = ""
    line: int = 0


@dataclass(frozen=True, kw_only=True)
class ProblemTold:
    """An error, as RFC 9457 has it."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    hint: str
    instance: str
    request_id: str
    errors: list[ProblemPlace]


@dataclass(frozen=True, kw_only=True)
class RunLinks:
    """Addresses of what belongs to a run."""

    self: str
    tensors: str
    snapshots: str
    backward_calls: str
    graph: str
    findings: str
    source: str
    output: str
    events: str
    cancel: str
    page: str


@dataclass(frozen=True, kw_only=True)
class TensorList(Listing[TensorRow]):
    """Tensors, by number."""


@dataclass(frozen=True, kw_only=True)
class SnapshotList(Listing[SnapshotRow]):
    """Snapshots, by tensor and moment."""


@dataclass(frozen=True, kw_only=True)
class BackwardCallList(Listing[BackwardCallRow]):
    """Backward calls, in order."""


@dataclass(frozen=True, kw_only=True)
class RowList(Listing[dict[str, Any]]):
    """Rows of one table by field name; bytes as base64, non-finite numbers as text."""


@dataclass(frozen=True, kw_only=True)
class RuleTold:
    """One rule: what it finds in one line, how bad and how sure its findings are.

    Attributes:
        fix: What its fixes are: safe, unsafe (they change the training, as intended) or manual (advice).
        thresholds: Numbers of a heuristic, by name.
    """

    code: str
    name: str
    family: Family
    headline: str
    level: Level
    confidence: Confidence
    fix: Literal["safe", "unsafe", "manual"]
    since: str
    thresholds: dict[str, float]
    url: str


@dataclass(frozen=True, kw_only=True)
class RuleFull(RuleTold):
    """One rule with its manual.

    Attributes:
        needs: Facts of a record without which it does not judge.
        explains: Rules whose findings are consequences of this rule's; refines: those that it supersedes.
        manual: Markdown; examples stand in Python fences.
    """

    needs: list[str]
    explains: list[str]
    refines: list[str]
    manual: str


@dataclass(frozen=True, kw_only=True)
class RuleList(Listing[RuleTold]):
    """Rules, by code."""


@dataclass(frozen=True, kw_only=True)
class Included:
    """What `include=` asked for, at most 100 of each, of the source its first 2000 lines; null: not asked for."""

    findings: FindingList | None
    tensors: TensorList | None
    source: SourceTold | None


@dataclass(frozen=True, kw_only=True)
class RunTold(RunView):
    """One run: what was asked, where it stands, how it ended.

    Attributes:
        ended: Its status never changes again.
        entry: The file that is started, or the module; of a program that was sent as `source` without a name, what it
            was called by us; of a watched job its script or notebook, if the recorder named it. named: whether the
            snippet's file was named; null: it has no snippet.
        isolation: What it really ran under, with the level demanded; null until it has run.
        recorder: Null unless it is watched.
        trial: Which finding's fix it tries, and the verdict; null unless its origin is `trial`.
        included: Null unless `include=` was given.
    """

    links: RunLinks
    included: Included | None


@dataclass(frozen=True, kw_only=True)
class RunList(Listing[RunTold]):
    """Runs, newest first."""


@dataclass(frozen=True, kw_only=True)
class EventTold:
    """Something that happened to a run; `seq` counts from 1 without a gap."""

    run: str
    seq: int
    kind: str
    at: str
    attempt: int | None
    detail: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class EventList(Listing[EventTold]):
    """Events of a run, in order."""


@dataclass(frozen=True, kw_only=True)
class SourceTold:
    """Lines of one file and what happened on them. `line_count`: of the whole file; `files`: of the snippet.

    `steps_made`, `steps_looked_at`: of the run; the lines describe the steps that were looked at. None: not known.
    """

    path: str
    files: list[str]
    line_count: int
    steps_made: int | None
    steps_looked_at: int | None
    lines: list[SourceLine]


@dataclass(frozen=True, kw_only=True)
class Health:
    """The process lives."""

    status: Literal["ok"]


@dataclass(frozen=True, kw_only=True)
class IsolationNow:
    """What a run of one queue gets now.

    Attributes:
        state: `ready`, `starting`, `broken`: no worker that lives can execute a run; `absent`: none lives;
            `cannot-start`: this service's own workers end at their start.
        levels: At which workers execute runs; several, where they differ.
        why: Why none is executed, or none at a higher level; empty, too, where a key is asked for: `GET /v1/workers`
            tells the operator.
    """

    state: Literal["ready", "starting", "broken", "absent", "cannot-start"]
    levels: list[str]
    why: list[str]


@dataclass(frozen=True, kw_only=True)
class Readiness:
    """Whether runs can be taken. Workers and broker are reported, not required: a run waits for them, safely.

    Attributes:
        status: `not-ready`: see 503; or the workers that this service starts end at their start, such as where the
            level that the settings ask for cannot be given.
        degraded: Why runs that are taken wait: the broker is away, or no worker that lives can execute any. Empty: they
            do not.
        missing_modules: Python modules that the broker's transport needs and that are not installed where the API runs.
        isolation: What runs get now, by queue.
    """

    status: Literal["ready", "not-ready"]
    degraded: list[Literal["broker", "workers"]]
    database: Literal["ok", "unavailable"]
    schema: Literal["at-head", "behind", "unknown"]
    home: Literal["writable", "not-writable"]
    broker: Literal["ok", "unavailable"]
    missing_modules: list[str]
    isolation: dict[str, IsolationNow]
    workers: dict[str, int]
    wakeups_failed: int
