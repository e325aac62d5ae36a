"""What the API tells of audits and policies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from backprobe.rules.framework.rule import Confidence
from service.web.listing import Listing
from store.audits.policy import Verdict


@dataclass(frozen=True, kw_only=True)
class SelfLink:
    """Its address."""

    self: str


@dataclass(frozen=True, kw_only=True)
class PolicyTold:
    """A revision of a policy."""

    id: str
    name: str
    revision: int
    fail: list[str]
    warn: list[str]
    min_confidence: Confidence
    new_only: bool
    not_run: Literal["fail", "warn"]
    min_backward_calls: int
    created_by: str
    created_at: str
    links: SelfLink


@dataclass(frozen=True, kw_only=True)
class PolicyList(Listing[PolicyTold]):
    """A page of policies."""


@dataclass(frozen=True, kw_only=True)
class FindingsCounted:
    """Findings by what the baseline had; each fingerprint counts once. Gone: of items that ended well again."""

    new: int
    known: int
    gone: int


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why an audit failed: a rule and an item."""

    custom_id: str | None
    run: str | None
    rule: str
    findings: int


@dataclass(frozen=True, kw_only=True)
class AuditLinks:
    """Addresses of what belongs to an audit."""

    self: str
    items: str
    events: str
    matrix: str
    findings: str
    sarif: str


@dataclass(frozen=True, kw_only=True)
class AuditTold:
    """An audit.

    Attributes:
        verdict: Null until it is judged. verdicts: under how many rulesets it was.
        items: `total`, `running`, and by verdict: pass, warn, fail, error, not_run; null until it is judged.
        findings, ruleset: Null until it is judged. reasons: worst first, at most 20.
    """

    id: str
    name: str
    status: Literal["open", "running", "judged", "canceled"]
    verdict: Literal["passed", "failed"] | None
    version: int
    policy: str | None
    policy_revision: int | None
    baseline: str | None
    project: str
    labels: dict[str, str]
    items: dict[str, int | None]
    findings: FindingsCounted | None
    ruleset: str | None
    verdicts: int
    reasons: list[Reason]
    created_by: str
    created_at: str
    finished_at: str | None
    links: AuditLinks


@dataclass(frozen=True, kw_only=True)
class AuditList(Listing[AuditTold]):
    """A page of audits."""


@dataclass(frozen=True, kw_only=True)
class AuditEventTold:
    """How an audit stood.

    Attributes:
        seq: The audit's version then. kind: progress, or as what it ended.
        items: `total` and `running`, those that have not ended. verdict: Null until it is judged.
    """

    audit: str
    seq: int
    kind: Literal["progress", "judged", "canceled"]
    items: dict[str, int]
    verdict: Literal["passed", "failed"] | None


@dataclass(frozen=True, kw_only=True)
class AuditEventList(Listing[AuditEventTold]):
    """How an audit stands, if that is new to who asks."""


@dataclass(frozen=True, kw_only=True)
class AuditDayTold:
    """Audits begun on one day (UTC), by what the newest verdict of each says.

    Attributes:
        audits: Those without a verdict too.
        items: Of audits that have a verdict, by verdict: pass, warn, fail, error, not_run.
        findings: Of these audits; a fingerprint counts once in each.
    """

    day: str
    audits: int
    passed: int
    failed: int
    canceled: int
    items: dict[str, int]
    findings: FindingsCounted


@dataclass(frozen=True, kw_only=True)
class AuditTrend:
    """Days with audits, oldest first."""

    items: list[AuditDayTold]


@dataclass(frozen=True, kw_only=True)
class CellTold:
    """What a rule says of an item; `known`: how many of its findings the baseline had."""

    rule: str
    state: Literal["warn", "fail", "not-run"]
    findings: int
    known: int


@dataclass(frozen=True, kw_only=True)
class AuditItemTold:
    """An item.

    Attributes:
        custom_id: Null: its line gives none that can be read, or one that an earlier line has.
        verdict: Null while its run goes on. cells: A rule that passes has none.
        problem: Why it was refused: `code`, `detail`, `errors` with pointers; `line` of an audit that came as NDJSON.
    """

    n: int
    custom_id: str | None
    run: str | None
    status: str | None
    ended: bool
    verdict: Verdict | None
    problem: dict[str, Any] | None
    cells: list[CellTold]


@dataclass(frozen=True, kw_only=True)
class AuditItemList(Listing[AuditItemTold]):
    """A page of items."""


@dataclass(frozen=True, kw_only=True)
class MatrixRow:
    """An item with the states of the rules that are not passed, by rule; `n`: its place in the audit."""

    n: int
    custom_id: str | None
    run: str | None
    verdict: Verdict | None
    states: dict[str, Literal["warn", "fail", "not-run"]]


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """Items by rules. `rules`: those that some item does not pass; what stands in no `states` is passed."""

    audit: str
    rules: list[str]
    items: list[MatrixRow]
