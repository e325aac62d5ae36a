"""Trials: the verdict on a fix, from what the program showed without it and what it showed with it.

    before                         the fix                  after                       verdict
    BP203 at line 7                line 7: .detach()        nothing found               confirmed
    BP203 at line 7                line 7: .detach()        nothing found, other loss   changes-values
    BP203 at line 7, BP101 line 9  insert above line 3      BP203 at line 8             insufficient
    BP203 at line 7                line 7: .detach()        BP110 at line 7             breaks

A finding before is found again behind an edit by its rule and its line: `LineMap` says where lines went.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.losses.loss_curves import first_losses
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.finding import Edit, Finding, Location, Trial
from backprobe.rules.framework.tables import shared_tables

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.judge import Judgement

EQUAL_LOSSES: Final = 1e-5
"""Relative difference up to which two losses are one: a float32 sum of n terms in another order differs by up to
n * 2**-24 (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., 4.2), which is 1e-5 for 170 terms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """How a program did not end well.

    Attributes:
        what: Class of the exception that ended it, or why it ended otherwise: "exit code 3", "wall-seconds".
        path, line: The user's statement that raised it; "", 0: none.
    """

    what: str
    path: str = ""
    line: int = 0

    def __str__(self) -> str:
        return f"{self.what} at {self.path}:{self.line}" if self.line else self.what


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What one run of a program showed.

    Attributes:
        findings: That no comment suppresses.
        failure: None: it ended well.
        loss: The value that its first backward call began from; None: not one number, or not measured.
        later: Those of the calls after it, before the first step.
    """

    findings: tuple[Finding, ...]
    failure: Failure | None = None
    loss: float | None = None
    later: tuple[float, ...] = ()


def shown(record: Record, judgement: Judgement) -> Shown:
    """What a record and its judgement show."""
    with shared_tables(record):
        found = tuple(one for one in judgement.findings if one.suppressed is None)
        losses = first_losses(record)
        first = losses[0] if losses else None
        return Shown(findings=found, failure=_failure(record), loss=first, later=losses[1:])


def _failure(record: Record) -> Failure | None:
    end = record.end
    if end is None:
        return Failure(what="the process ended before the program did")
    if end.exit_code == 0:
        return None
    raised = next((row for row in record.raised if row.n == end.exception), None)
    if raised is None:
        return Failure(what=f"exit code {end.exit_code}")
    if raised.site is None:
        return Failure(what=raised.type)
    index = lookup(record)
    site = index.sites[raised.site]
    return Failure(what=raised.type, path=index.sources[site.source].path, line=site.line)


class LineMap:
    """Where the lines of edited files were before: `before(path, line)`."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        self._edits = sorted(edits, key=lambda edit: (edit.region.start_line, edit.region.start_col))

    def before(self, path: str, line: int) -> range:
        """The lines that a line of the edited text was; several where an edit made it."""
        moved = 0
        for edit in self._edits:
            region, made = edit.region, edit.text.count("\n")
            if edit.path != path:
                continue
            first, last = region.start_line + moved, region.start_line + moved + made
            if line < first:
                break
            stays = _leaves_last_line(edit)
            if line < last or (line == last and not stays):
                return range(region.start_line, max(region.start_line, region.end_line - stays) + 1)
            moved += made - (region.end_line - region.start_line)
        return range(line - moved, line - moved + 1)


def _leaves_last_line(edit: Edit) -> bool:
    """The edit ends before the first column of a line that stays as it is, on a line of its own."""
    region = edit.region
    return region.end_col == 1 and (edit.text.endswith("\n") or (not edit.text and region.start_col == 1))


def compared(finding: Finding, edits: Sequence[Edit], before: Shown, after: Shown) -> Trial:
    """The verdict on a fix of a finding.

    Where the program failed before, it may go on behind the fix: what is found there, and where it fails then, was not
    reached before and is not held against the fix.

    Args:
        finding: One of `before.findings`.
        edits: The fix.
        before: What the program showed as it is. after: with the fix, with the same seed.
    """
    lines = LineMap(edits)
    gone, new = _paired(lines, before.findings, after.findings)
    is_there = finding not in gone or _consequence_stays(lines, finding, after.findings)
    if after.failure is not None:
        if before.failure is None:
            return Trial(verdict="breaks", why=f"the program fails: {after.failure}")
        if _is_same_failure(lines, before.failure, after.failure):
            return Trial(verdict="insufficient", why=f"the program fails as before: {after.failure}")
    loud = [one for one in new if one.level != "note"]
    there = [one for one in loud if _same_line(lines, finding, one) and one.location.path == finding.location.path]
    if there:
        return Trial(verdict="insufficient", why=f"the line has another fault: {_named(there[0])}")
    if loud and before.failure is None:
        more = f", and {len(loud) - 1} more" if len(loud) > 1 else ""
        return Trial(verdict="breaks", why=f"a new finding: {_named(loud[0])}{more}")
    if is_there:
        return Trial(verdict="insufficient", why="the finding is still there")
    if before.loss is None or after.loss is None or _is_equal(before.loss, after.loss) or _is_sum(before, after.loss):
        return Trial(verdict="confirmed")
    return Trial(verdict="changes-values", why=f"the first loss was {before.loss:.6g} and is {after.loss:.6g}")


def _named(finding: Finding) -> str:
    return f"{finding.rule.code} {finding.rule.name} at {finding.location.path}:{finding.location.region.start_line}"


def _is_equal(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=EQUAL_LOSSES) or (math.isnan(one) and math.isnan(other))


def _is_sum(before: Shown, loss: float) -> bool:
    """One call over the sum of what several began from: the gradients add up to the same, `(a + b).backward()`."""
    total = before.loss or 0.0
    return any(_is_equal(total := total + one, loss) for one in before.later)


def _is_same_failure(lines: LineMap, before: Failure, after: Failure) -> bool:
    return (
        before.what == after.what
        and before.path == after.path
        and (not before.line or before.line in lines.before(after.path, after.line))
    )


def _paired(lines: LineMap, before: Sequence[Finding], after: Sequence[Finding]) -> tuple[list[Finding], list[Finding]]:
    """Findings that are gone, and those that are new. One is paired once: first by line and name, then by less."""
    gone, new = list(before), list(after)
    for how in (_same_name, _same_line, _same_function):
        for one in tuple(new):
            match = next((other for other in gone if _same_rule(one, other) and how(lines, other, one)), None)
            if match is not None:
                gone.remove(match)
                new.remove(one)
    folded = [(one.rule, one.location) for finding in before for one in finding.consequences]
    return gone, [one for one in new if not any(_is_at(lines, rule, place, one) for rule, place in folded)]


def _same_rule(one: Finding, other: Finding) -> bool:
    return one.rule.code == other.rule.code and one.location.path == other.location.path


def _same_line(lines: LineMap, before: Finding, after: Finding) -> bool:
    return before.location.region.start_line in lines.before(after.location.path, after.location.region.start_line)


def _same_name(lines: LineMap, before: Finding, after: Finding) -> bool:
    return _same_line(lines, before, after) and before.evidence.get("binding") == after.evidence.get("binding")


def _same_function(_lines: LineMap, before: Finding, after: Finding) -> bool:
    return before.location.function == after.location.function and before.evidence.get("binding") == after.evidence.get(
        "binding"
    )


def _is_at(lines: LineMap, rule: str, place: Location, finding: Finding) -> bool:
    if rule not in {finding.rule.name, finding.rule.code}:
        return False
    now = finding.location
    return place.path == now.path and place.region.start_line in lines.before(now.path, now.region.start_line)


def _consequence_stays(lines: LineMap, finding: Finding, after: Sequence[Finding]) -> bool:
    """What followed from it is found by itself now: it did not follow from what the fix changes."""
    return any(
        _is_at(lines, one.rule, one.location, other)
        for one in finding.consequences
        for other in after
        if other.level != "note"
    )
