"""What the API tells of audits and policies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from backprobe.rules.framework.rule import Confidence, Level
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
    """The current state of an audit; empty if the client already has it."""


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
    """What a rule says of an item.

    Attributes:
        known: How many of its findings the baseline had.
        level: The worst of its findings; null: there are none.
    """

    rule: str
    state: Literal["warn", "fail", "not-run"]
    findings: int
    known: int
    level: Level | None


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
    """An item with what rules say of it, by rule; a rule that passed is in none of these.

    Attributes:
        n: Its place in the audit.
        judged: Rules have judged its run; if not, no rule passed.
        states: What the policy makes of the rule's findings.
        findings: How many, where there are any. known: How many of them the baseline had, where it had any.
        levels: The worst of the findings; not told with `ruleset`, whose levels are not stored.
    """

    n: int
    custom_id: str | None
    run: str | None
    verdict: Verdict | None
    judged: bool
    states: dict[str, Literal["warn", "fail", "not-run"]]
    findings: dict[str, int]
    known: dict[str, int]
    levels: dict[str, Level]


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """Items by rules. `rules`: those that some item does not pass; a rule that is missing in `states` passed."""

    audit: str
    rules: list[str]
    items: list[MatrixRow]


@dataclass(frozen=True, kw_only=True)
class AuditBefore:
    """The audit that another one is compared with."""

    id: str
    name: str
    created_at: str


@dataclass(frozen=True, kw_only=True)
class RuleChange:
    """The findings of a rule by what became of them since the audit before."""

    rule: str
    new: int
    fixed: int
    unchanged: int


@dataclass(frozen=True, kw_only=True)
class AuditChanges:
    """What became of findings since the audit before; those of one line in several runs are one, by their fingerprint.

    Attributes:
        before: The newest audit of the same project and name that was begun before and is judged; null: there is
            none, and nothing is compared.
        fixed: Not there any more in programs of the audit before that this one has too, by `custom_id`, and that ended
            well in it. What became of findings of other programs is not known.
        rules: Those with a finding of either audit; their counts add up to the others.
    """

    audit: str
    before: AuditBefore | None
    new: int
    fixed: int
    unchanged: int
    rules: list[RuleChange]
