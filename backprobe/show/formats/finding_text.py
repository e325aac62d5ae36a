"""One finding as the best compilers show an error: the source line with carets, the story, the fix as a diff."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff
from typing import TYPE_CHECKING

import msgspec

from backprobe.rules.edits.text_edits import edited
from backprobe.rules.framework.locations import MAX_LINE
from backprobe.show.first_occurrence import first_seen
from backprobe.show.plain_text import plain
from backprobe.show.terminal_style import Ink, columns
from backprobe.show.trial_words import trial_words

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Edit, Finding, Fix, Location, Trial

MAX_LINES = 6
"""Source lines shown of one region."""

MAX_CALLS = 4
"""Calls shown of those that led to a finding's function."""


def finding_lines(record: Record, finding: Finding, ink: Ink) -> list[str]:
    """Write the lines of one finding."""
    rule = finding.rule
    head = ink(finding.level, f"{finding.level}[{rule.code}]")
    lines = [f"{head} {ink('strong', rule.name)} ({finding.confidence})"]
    lines += _excerpt(record, finding.location, "-->", ink, finding.level)
    if called := called_from(finding):
        lines.append(f"  {ink('quiet', called)}")
    lines += [f"  {line}" for line in plain(finding.message, keep_newlines=True).split("\n")]
    for other in finding.related:
        lines.append(f"  {ink('note', 'note')}: {plain(other.message)}")
        lines += _excerpt(record, other.location, "-->", ink, "note")
    count = finding.occurrences
    if count.count > 1:
        lines.append(f"  seen {count.count} times, from step {count.first_step} to step {count.last_step}")
    elif seen := first_seen(finding):
        lines.append(f"  {seen[0].lower()}{seen[1:-1]}")
    for fix in finding.fixes:
        lines += _fix(record, fix, ink)
    lines.append(f"  {ink('quiet', 'more:')} backprobe explain {rule.code}")
    return lines


def called_from(finding: Finding) -> str:
    """Write the calls that led to its function, innermost first: "called from a.py:9 in fit, a.py:30"; "" if none."""
    calls = [frame for stack in finding.stacks if stack.role == "call" for frame in stack.frames[-2::-1]]
    shown = [
        f"{plain(frame.path)}:{frame.line}" + ("" if frame.function == "<module>" else f" in {plain(frame.function)}")
        for frame in calls[:MAX_CALLS]
    ]
    more = f" and {len(calls) - MAX_CALLS} more" if len(calls) > MAX_CALLS else ""
    return f"called from {', '.join(shown)}{more}" if shown else ""


def _excerpt(record: Record, place: Location, arrow: str, ink: Ink, role: str) -> Iterator[str]:
    region = place.region
    source = source_of(record, place.path) or [""] * region.start_line
    margin = len(str(region.end_line))
    yield f"{' ' * margin} {ink('quiet', arrow)} {plain(place.path)}:{region.start_line}:{region.start_col}"
    last = min(region.end_line, region.start_line + MAX_LINES - 1, len(source))
    for number in range(region.start_line, last + 1):
        text = (source[number - 1] or (place.text if number == region.start_line else ""))[:MAX_LINE]
        yield f"{ink('quiet', f'{number:>{margin}} |')} {plain(text)}"
        first = region.start_col if number == region.start_line else len(text) - len(text.lstrip()) + 1
        end = region.end_col if number == region.end_line else len(text) + 1
        yield f"{ink('quiet', ' ' * margin + ' |')} {_carets(text, first, end, ink, role)}".rstrip()
    if last < region.end_line:
        yield f"{ink('quiet', ' ' * margin + ' |')} ..."


def _carets(text: str, first: int, end: int, ink: Ink, role: str) -> str:
    before = columns(plain(text[: first - 1]))
    return " " * before + ink(role, "^" * max(1, columns(plain(text[first - 1 : end - 1]))))


def source_of(record: Record, path: str) -> list[str] | None:
    """Return the lines of a file of the record; None if it is not in it."""
    for row in record.sources:
        if row.path == path and row.text:
            return row.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return None


def _fix(record: Record, fix: Fix, ink: Ink) -> Iterator[str]:
    yield f"  {ink('good', 'fix')} ({fix.safety}): {plain(fix.title)}"
    for path in dict.fromkeys(edit.path for edit in fix.edits):
        lines = source_of(record, path)
        if lines is not None:
            yield from _diff(lines, [edit for edit in fix.edits if edit.path == path], ink)
    if fix.trial is not msgspec.UNSET:
        yield f"    {_trial(fix.trial, ink)}"


def _trial(trial: Trial, ink: Ink) -> str:
    role = {"confirmed": "good", "breaks": "gone"}.get(trial.verdict, "note")
    return f"{ink(role, trial_words(trial))}{f': {plain(trial.why)}' if trial.why else ''}"


def _diff(lines: list[str], edits: list[Edit], ink: Ink) -> Iterator[str]:
    for sign, line in changed_lines(lines, edits):
        yield f"    {ink('gone' if sign == '-' else 'good', f'{sign} {plain(line)}')}"


def changed_lines(lines: list[str], edits: list[Edit]) -> Iterator[tuple[str, str]]:
    """Yield what edits do to the lines of a file: ("-", a line that is removed), ("+", one that is added)."""
    changed = edited("\n".join(lines), edits).split("\n")
    for line in unified_diff(lines, changed, n=0, lineterm=""):
        if line[0] in "-+" and not line.startswith(("---", "+++")):
            yield line[0], line[1:]
