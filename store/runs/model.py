"""A run as everybody outside the store sees it: frozen values whose fields are the API's names.

Times are ISO 8601 text in UTC with milliseconds, `2026-11-20T19:52:29.123Z`. None: "not yet", or "does not apply".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from backprobe.isolation import IsolationLevel
from store.runs.limits import Limits
from store.runs.trial import TrialOf, TrialShort

Status = Literal["queued", "running", "succeeded", "failed", "exceeded", "canceled", "lost"]
EndStatus = Literal["succeeded", "failed", "exceeded", "canceled", "lost"]
Origin = Literal["submitted", "watched", "uploaded", "trial"]
Queue = Literal["cpu", "gpu"]
RecordState = Literal["none", "partial", "whole", "expired"]

ENDED: Final = frozenset(get_args(EndStatus))
"""The statuses that never change again."""

QUEUES: Final[tuple[Queue, ...]] = ("cpu", "gpu")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunKey:
    """Where a run's record rows lie: the first columns of every record table.

    Attributes:
        part: Months since January 2020 of the run's id. run_id: its number. attempt: whose rows they are.
    """

    part: int
    run_id: int
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What a caller asks to be run. Everything was checked before: the store only keeps it.

    Attributes:
        files: Text by relative POSIX path; entry: one of those paths, or a module among them.
        named: Whoever sent it named its file.
        device_class: A worker must offer this device; None: any.
        min_isolation: The least level that the caller accepts.
        priority: 0 first to 9 last; each step is worth a minute of waiting.
        seed: For `torch.manual_seed` before the program; None: left alone.
        rules: Which rules judge it, and how, as settings of `backprobe.rules.framework.options`; None: all.
        created_by: The actor, `key:...`, `user:...` or `local`.
        max_attempts: How often our own failures may start it.
        queue_seconds: How long it may wait for a worker before it is lost.
        traceparent: W3C trace context of who asked (`store.telemetry.trace`); None: none.
        trial: The fix that it tries; None: it is no trial.
    """

    files: Mapping[str, str]
    entry: str
    named: bool = True
    arguments: tuple[str, ...] = ()
    queue: Queue = "cpu"
    device_class: str | None = None
    min_isolation: IsolationLevel = "none"
    limits: Limits = field(default_factory=Limits)
    capture: Mapping[str, Any] = field(default_factory=lambda: {"tier": "full"})
    seed: int | None = None
    rules: Mapping[str, Any] | None = None
    priority: int = 5
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    created_by: str = "local"
    custom_id: str | None = None
    rerun_of: str | None = None
    max_attempts: int = 3
    queue_seconds: int = 24 * 3600
    tenant_id: int = 1
    project_id: int = 1
    traceparent: str | None = None
    trial: TrialOf | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How the child ended, as the trusted side saw it."""

    exit_code: int | None
    signal: int | None
    limit: str | None
    wall_seconds: float | None
    cpu_seconds: float | None
    max_rss_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunError:
    """Why a run did not succeed.

    Attributes:
        whose: `program` (failed), `limit` (exceeded), `asked` (canceled), `ours` (lost).
        code: Kebab case: `raised`, `exited`, `signal`, `wall-seconds`, `never-started`, `worker-lost`, ...
        type: The exception's class, where one ended it. message: its exact text, a stranger's data; after it, in
            parentheses, which limit or level it may come from.
    """

    whose: Literal["program", "limit", "asked", "ours"]
    code: str
    message: str
    type: str | None = None
    path: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordShort:
    """The record in numbers, without reading it.

    Attributes:
        attempt: Whose record it is; None: there is none.
        live: The run goes on, and what has come of its record is shown; state and counts are those of its end.
        tensors: With a name and a state, as `count_of_tensors` counts them.
        bytes: Of a recorder at work: of its frames so far.
        not_captured: Facts that this capture tier does not hold.
        steps_made: Training steps that it tells of; in a long program fewer are captured in full: steps_looked_at. Only
            `runs.get` fills the two; None: not filled, or no record.
    """

    state: RecordState
    attempt: int | None
    live: bool
    tensors: int
    snapshots: int
    nodes: int
    backward_calls: int
    bytes: int
    peak_held_bytes: int | None
    truncated: bool
    not_captured: tuple[str, ...]
    torch: str | None
    tier: str | None
    steps_made: int | None = None
    steps_looked_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingCounts:
    """Findings by level, those suppressed apart; and how many rules said so. `ruleset` is None until it was judged.

    Attributes:
        judging_attempts: Judgings of the stored record that began and did not end, since the last one that did.
        quarantined: There were too many of them: the record is not judged any more.
    """

    error: int
    warning: int
    note: int
    suppressed: int
    ruleset: str | None
    rules_judged: int
    rules_not_run: int
    judging_attempts: int = 0
    quarantined: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderShort:
    """The recorder of a watched run.

    Attributes:
        next_frame: Number of the frame that is wanted next: so many have come. rows: in them.
        heard_at: When it last sent something new.
        environment: Where the job runs, in the recorder's words.
    """

    next_frame: int
    rows: int
    heard_at: str
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """One run, as `GET /v1/runs/{id}` shows it: the store's row, the answer and its description are made from this.

    Attributes:
        id: Public. version: rises with every change that a reader can see; the ETag.
        ended: It is in a status that never changes again.
        queue_position: How many runs of its queue are ahead of it, 0 for the next one; None unless it is queued. Only
            `runs.get` fills it.
        entry: The file or module that is started; of a watched job its script, if the recorder named it.
        named: Whoever sent the snippet named its file; None: it has no snippet.
        recorder: None: the run is not watched.
        audit: Public id of the last audit that it is an item of; None: of none.
        trial: None: it is none.
        isolation: `{"level": ..., "demanded": ...}` and what the worker attested; None until it has run.
    """

    id: str
    status: Status
    ended: bool
    origin: Origin
    version: int
    project: str
    snippet: str | None
    entry: str | None
    named: bool | None
    arguments: tuple[str, ...]
    labels: Mapping[str, str]
    queue: Queue
    device_class: str | None
    priority: int
    queue_position: int | None
    attempt: int
    max_attempts: int
    isolation: Mapping[str, Any] | None
    created_at: str
    started_at: str | None
    cancel_requested_at: str | None
    finished_at: str | None
    kept_until: str
    pinned: bool
    outcome: Outcome
    error: RunError | None
    limits: Mapping[str, int]
    capture: Mapping[str, Any]
    seed: int | None
    rules: Mapping[str, Any] | None
    record: RecordShort
    findings: FindingCounts
    recorder: RecorderShort | None
    audit: str | None
    custom_id: str | None
    rerun_of: str | None
    trial: TrialShort | None
    created_by: str
    min_isolation: IsolationLevel

    @property
    def unnamed(self) -> str | None:
        """Public id of its snippet, if whoever sent that named no file."""
        return self.snippet if self.named is False else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow(RunView):
    """One run, with what only the server knows of it.

    Attributes:
        key: Where its visible record lies, also one that still comes; None while there is none. Every function of
            `store.queries` takes the run.
        record_gone: Why its record is: kept-until, database-full or deleted; None: it is there, or nobody noted why.
    """

    key: RunKey | None
    record_gone: str | None
    tenant_id: int
    project_id: int
    run_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    """Some runs, newest first.

    Attributes:
        next: Pass it as `after` for the next page; None: this was the last.
    """

    items: tuple[RunRow, ...]
    next: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One attempt at one run, and all that a worker needs for it. The fence: `run_id` and `attempt`.

    Attributes:
        public_id: `run_...`. files: the snippet's text by path. lease_seconds: how long the claim holds unless renewed.
        unnamed: Public id of the snippet, if whoever sent it named no file; None: it is named, or there is none.
        cancel_requested: Somebody had already asked for it (it was requeued meanwhile).
        traceparent: W3C trace context of the request; None: none.
        trial: The fix that it tries; None: it is no trial.
    """

    run_id: int
    public_id: str
    part: int
    tenant_id: int
    project_id: int
    attempt: int
    max_attempts: int
    worker: str
    files: Mapping[str, str]
    entry: str
    arguments: tuple[str, ...]
    limits: Limits
    capture: Mapping[str, Any]
    seed: int | None
    rules: Mapping[str, Any] | None
    queue: Queue
    device_class: str | None
    min_isolation: IsolationLevel
    lease_seconds: float
    cancel_requested: bool
    traceparent: str | None = None
    unnamed: str | None = None
    trial: TrialOf | None = None

    @property
    def key(self) -> RunKey:
        """Where this attempt's record rows go."""
        return RunKey(part=self.part, run_id=self.run_id, attempt=self.attempt)


class FencedOut(Exception):
    """This attempt no longer owns the run: its lease went to another, or the run has ended.

    The worker must kill its child and write nothing more.
    """

    def __init__(self, public_id: str, attempt: int) -> None:
        super().__init__(f"attempt {attempt} of {public_id} no longer owns the run; nothing was written")
        self.public_id, self.attempt = public_id, attempt
