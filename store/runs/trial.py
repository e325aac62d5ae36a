"""A trial as its run has it: which fix of which finding, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass

from backprobe.rules.framework.rule import TrialVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOf:
    """What a trial tries.

    Attributes:
        finding: Public id. fix: Which of its fixes, from 0.
    """

    finding: str
    fix: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialShort:
    """A trial, as its run shows it.

    Attributes:
        finding: Public id of the finding whose fix is tried. fix: Which of its fixes, from 0.
        verdict: None: it has not ended. why: what stands against the fix, or why no run tells.
    """

    finding: str
    fix: int
    verdict: TrialVerdict | None
    why: str | None
