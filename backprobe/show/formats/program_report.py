"""What the formats for other programs are made of: findings, and how the program that they speak of ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backprobe.rules.framework.finding import Finding

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.judge import Judgement


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """One run, as far as SARIF, JUnit and annotations tell of it.

    Attributes:
        name: Which run: its id, or the script.
        findings: Worst first.
        ended_well: The program came to its end; what it did before is judged either way.
        ending: How it ended, in a word.
        exit_code: Of the program; None: not known.
        rules_judged: How many rules looked at the whole record.
        unnamed: What the program is known by, if it was sent without the name of a file; None: its files have names.
        base_url: Of the service that shows the rules' manuals, without a slash at its end; None: there is none.
    """

    name: str
    findings: tuple[Finding, ...]
    ended_well: bool
    ending: str
    ruleset: str | None
    rules_judged: int
    exit_code: int | None = None
    unnamed: str | None = None
    base_url: str | None = None


def reported(record: Record, judgement: Judgement, *, script: str) -> Reported:
    """What a record and its judgement say."""
    end = record.end
    return Reported(
        name=script,
        findings=judgement.findings,
        ended_well=end is not None and end.exit_code in {0, None} and end.ending in {"ended", "exited"},
        ending="cut off" if end is None else end.ending,
        exit_code=None if end is None else end.exit_code,
        ruleset=judgement.ruleset,
        rules_judged=judgement.rules_judged,
    )
