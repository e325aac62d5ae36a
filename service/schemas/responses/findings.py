"""What the API tells of a finding: `backprobe.finding/1`, from which an editor draws its marks and makes its fixes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from backprobe.rules.framework.rule import Confidence, Level, TrialVerdict
from service.web.listing import Listing
from store.findings.findings import GroupShort
from store.runs.model import Status


@dataclass(frozen=True, kw_only=True)
class Region:
    """A part of a file: 1-based, columns in Unicode code points, `end_col` exclusive."""

    start_line: int
    start_col: int
    end_line: int
    end_col: int


@dataclass(frozen=True, kw_only=True)
class Location:
    """A region of one of the program's files, and the text of the line that it starts on."""

    path: str
    region: Region
    text: str


@dataclass(frozen=True, kw_only=True)
class FindingRule:
    """Which rule said it."""

    code: str
    name: str
    url: str


@dataclass(frozen=True, kw_only=True)
class RelatedTold:
    """Another place of the story, in the order in which it happened."""

    message: str
    location: Location


@dataclass(frozen=True, kw_only=True)
class FrameTold:
    """One frame of a stack."""

    path: str
    line: int
    function: str


@dataclass(frozen=True, kw_only=True)
class StackTold:
    """A call stack and its part in the story: `call`, the calls that led to the finding's own place, the last frame."""

    role: str
    frames: list[FrameTold]


@dataclass(frozen=True, kw_only=True)
class EditTold:
    """Replace a region of a file by a text; an empty region inserts."""

    path: str
    region: Region
    text: str


@dataclass(frozen=True, kw_only=True)
class FixTold:
    """What to change; without edits it is advice. All edits of one fix belong together."""

    title: str
    safety: Literal["safe", "unsafe", "manual"]
    edits: list[EditTold]


@dataclass(frozen=True, kw_only=True)
class ConsequenceTold:
    """A finding of another rule that follows from this one and is folded under it."""

    rule: str
    location: Location


@dataclass(frozen=True, kw_only=True)
class TrialTold:
    """A run of the program with one of a finding's fixes in it, and what came of it.

    Attributes:
        fix: Which, from 0. verdict: null: the run has not ended. why: what stands against the fix, or why no run tells.
    """

    run: str
    status: Status
    fix: int
    verdict: TrialVerdict | None
    why: str | None
    created_at: str


@dataclass(frozen=True, kw_only=True)
class TrialList(Listing[TrialTold]):
    """Trials, the newest first."""


@dataclass(frozen=True, kw_only=True)
class FindingTold:
    """A rule's verdict at a source line, `backprobe.finding/1`. Clients render it, they never make one.

    Attributes:
        trials: Of its fixes, the newest first; null unless `include=trials` was given, or it comes with its run.
    """

    schema: Literal["backprobe.finding/1"]
    id: str
    run: str
    ruleset: str
    fingerprint: str
    group: GroupShort | None
    rule: FindingRule
    level: Level
    confidence: Confidence
    message: str
    location: Location
    related: list[RelatedTold]
    stacks: list[StackTold]
    evidence: dict[str, Any]
    fixes: list[FixTold]
    consequences: list[ConsequenceTold]
    occurrences: dict[str, int]
    suppressed: dict[str, Any] | None
    gone: dict[str, Any] | None
    trials: list[TrialTold] | None


@dataclass(frozen=True, kw_only=True)
class FindingList(Listing[FindingTold]):
    """Findings, worst first, then in order of the source."""
