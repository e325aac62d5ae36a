"""Annotations of GitHub's workflows: `::warning file=train.py,line=2,...::message`, worst first.

Of an audit, an error is what fails it: a finding by the policy, or a program that was not run or did not end well. What
only warns is a warning, and what does nothing (the baseline has it, or it is not sure enough) a notice.

A step shows ten errors and ten warnings and drops the rest without a word, so the last line counts them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from backprobe.severity import LEVELS
from backprobe.show.formats.program_report import Reported
from backprobe.show.plain_text import plain

if TYPE_CHECKING:
    from backprobe.rules import Finding
    from backprobe.rules.framework.rule import Level

MOST: Final = 10
"""Of each level, in one step (docs.github.com, "Workflow commands for GitHub Actions"; actions/toolkit)."""

_COMMANDS: Final = {"error": "error", "warning": "warning", "note": "notice"}
_EFFECTS: Final[Mapping[str | None, Level]] = {"fail": "error", "warn": "warning", None: "note"}


def render(runs: Sequence[Reported], *, verdict: str | None = None) -> str:
    """Render the annotations of what is not suppressed, one a line, without a newline at the end.

    Args:
        runs: One or more.
        verdict: Of the audit that they are of, for the last line; None: of none.
    """
    rows: list[tuple[Level, Reported, Finding | None]] = []
    rows.extend((_level(run, None), run, None) for run in runs if run.is_broken)
    rows.extend(
        (_level(run, finding), run, finding) for run in runs for finding in run.findings if finding.suppressed is None
    )
    lines: list[str] = []
    told: Counter[str] = Counter()
    for level, run, finding in sorted(rows, key=lambda row: LEVELS.index(row[0])):
        told[level] += 1
        if told[level] <= MOST:
            lines.append(_of_program(run, level) if finding is None else _annotation(run, finding, level))
    hidden = sum(max(0, count - MOST) for count in told.values())
    ended = ", ".join(f"{count} {level}{'s' if count > 1 else ''}" for level, count in told.items()) or "no finding"
    rest = f"; {hidden} of them are not annotated" if hidden else ""
    return "\n".join([*lines, f"backprobe: {ended}{rest}{'' if verdict is None else f'; {verdict}'}"])


def _level(run: Reported, finding: Finding | None) -> Level:
    """Of a finding, or of the program itself: by the policy of the audit; without one, the finding's own."""
    if finding is None:
        return "warning" if run.is_excused else "error"
    if run.rules is None:
        return finding.level
    return _EFFECTS[run.effect(finding)]


def _of_program(run: Reported, level: Level) -> str:
    """Of a program that was not run, or did not end well."""
    error, name = run.error, plain(run.name)
    where: dict[str, object] = {}
    if run.unnamed is None and error is not None and error.path is not None and error.line is not None:
        where = {"file": plain(error.path), "line": error.line}
    elif run.unnamed is None and error is None and name.partition(" #")[0].endswith(".py"):
        where = {"file": name.partition(" #")[0], "line": 1}
    message = f"{name}: {plain(run.why)}"
    where["title"] = "the program was not judged" if run.verdict == "not-run" else "the program did not end well"
    return f"::{_COMMANDS[level]} {_properties(where)}::{_text(message)}"


def _annotation(run: Reported, finding: Finding, level: Level) -> str:
    place = finding.location.region
    where = {
        "file": plain(finding.location.path),
        "line": place.start_line,
        "endLine": place.end_line,
        "col": place.start_col,
        "endColumn": place.end_col,
    }
    message = plain(finding.message, keep_newlines=True)
    if run.unnamed is not None:  # there is no file that could be annotated
        where, message = {}, f"line {place.start_line} of snippet {plain(run.unnamed)}: {message}"
    told = {**where, "title": f"{finding.rule.code} {finding.rule.name}"}
    return f"::{_COMMANDS[level]} {_properties(told)}::{_text(message)}"


def _properties(told: Mapping[str, object]) -> str:
    return ",".join(f"{name}={_property(str(value))}" for name, value in told.items())


def _text(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _text(text).replace(":", "%3A").replace(",", "%2C")
