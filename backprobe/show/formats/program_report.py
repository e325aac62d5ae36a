"""What the formats for other programs are made of: findings, and how the program that they speak of ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.finding import Finding
from backprobe.rules.policy import Rules, Verdict, found_of

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.judge import Judgement


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramError:
    """What ended a program.

    Attributes:
        kind: The exception's class, or another word for it. message: its exact text, a stranger's.
        path, line: The user's innermost statement in it; None: there is none.
    """

    kind: str
    message: str
    path: str | None = None
    line: int | None = None

    @property
    def to_line(self) -> str:
        """In a line: `ValueError: no such file (model.py:12)`."""
        first = self.message.partition("\n")[0]
        said = f"{self.kind}: {first}" if first else self.kind
        return said if self.path is None or self.line is None else f"{said} ({self.path}:{self.line})"


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
        backward_calls: In the record; None: not counted.
        unnamed: What the program is known by, if it was sent without the name of a file; None: its files have names.
        base_url: Of the service that shows the rules' manuals, without a slash at its end; None: there is none.
        error: What ended the program; None: nothing did, or it is not known.
        problem: Why it was refused or stopped, in a line; None: it was neither.
        rules: The policy that its audit is judged by; None: it is of no audit.
        known: Fingerprints of the baseline that it is compared with; None: there is no baseline.
        verdict: Of the audit; None: there is none.
    """

    name: str
    findings: tuple[Finding, ...]
    ended_well: bool
    ending: str
    ruleset: str | None
    rules_judged: int
    backward_calls: int | None = None
    exit_code: int | None = None
    unnamed: str | None = None
    base_url: str | None = None
    error: ProgramError | None = None
    problem: str | None = None
    rules: Rules | None = None
    known: frozenset[str] | None = None
    verdict: Verdict | None = None

    @property
    def is_broken(self) -> bool:
        """The program itself, not a finding of it, is to be told."""
        return not self.ended_well or self.verdict in ("error", "not-run")

    @property
    def is_excused(self) -> bool:
        """Nobody judged it, and the policy lets that pass."""
        return self.verdict == "not-run" and self.rules is not None and self.rules.not_run == "warn"

    @property
    def missing_calls(self) -> str | None:
        """Why a program that ended well was not judged; None: it made the backward calls that its policy demands."""
        if self.rules is None or self.backward_calls is None or not self.ended_well:
            return None
        return self.rules.explain_missing_calls(self.backward_calls)

    @property
    def why(self) -> str:
        """Why it is broken, in a line."""
        if self.problem is not None:
            return self.problem
        if self.error is not None:
            return self.error.to_line
        if self.ended_well:
            return self.missing_calls or "no rule has judged it, or one that the policy names in `fail` was not run"
        return f"the program ended: {self.ending}" + (f", exit code {self.exit_code}" if self.exit_code else "")

    def is_known(self, finding: Finding) -> bool:
        """Return whether the baseline has the finding."""
        return self.known is not None and finding.fingerprint in self.known

    def effect(self, finding: Finding) -> Literal["fail", "warn"] | None:
        """Return what a finding does to the audit; None if it does nothing, or there is no audit."""
        if self.rules is None or finding.suppressed is not None:
            return None
        return self.rules.effect(found_of(finding), self.known or ())


def report_program(record: Record, judgement: Judgement, *, script: str) -> Reported:
    """Report what a record and its judgement say."""
    end = record.end
    return Reported(
        name=script,
        findings=judgement.findings,
        ended_well=end is not None and end.exit_code in {0, None} and end.ending in {"ended", "exited"},
        ending="cut off" if end is None else end.ending,
        exit_code=None if end is None else end.exit_code,
        ruleset=judgement.ruleset,
        rules_judged=judgement.rules_judged,
        backward_calls=len(record.backward_calls),
        error=program_error(record),
    )


def program_error(record: Record) -> ProgramError | None:
    """Return the exception that ended the program. Its path is relative to the same folder as the findings' paths."""
    number = None if record.end is None else record.end.exception
    raised = next((row for row in record.raised if row.n == number), None)
    if raised is None:
        return None
    if raised.site is None:
        return ProgramError(kind=raised.type, message=raised.message)
    index = lookup(record)
    site = index.sites[raised.site]
    return ProgramError(kind=raised.type, message=raised.message, path=index.sources[site.source].path, line=site.line)
