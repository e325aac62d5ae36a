"""Annotations of GitHub's workflows: `::warning file=train.py,line=2,...::message`, worst first.

A step shows ten errors and ten warnings and drops the rest without a word, so the last line counts them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from backprobe.severity import LEVELS
from backprobe.show.formats.program_report import Reported
from backprobe.show.plain_text import plain

if TYPE_CHECKING:
    from backprobe.rules import Finding

MOST: Final = 10
"""Of each level, in one step (docs.github.com, "Workflow commands for GitHub Actions"; actions/toolkit)."""

_COMMANDS: Final = {"error": "error", "warning": "warning", "note": "notice"}


def render(runs: Sequence[Reported]) -> str:
    """The annotations of what is not suppressed, one a line, without a newline at the end."""
    found = [(run, finding) for run in runs for finding in run.findings if finding.suppressed is None]
    lines: list[str] = []
    told: Counter[str] = Counter()
    for run, finding in sorted(found, key=lambda pair: LEVELS.index(pair[1].level)):
        told[finding.level] += 1
        if told[finding.level] <= MOST:
            lines.append(_annotation(run, finding))
    hidden = sum(max(0, count - MOST) for count in told.values())
    ended = ", ".join(f"{count} {level}{'s' if count > 1 else ''}" for level, count in told.items()) or "no finding"
    rest = f"; {hidden} of them are not annotated" if hidden else ""
    return "\n".join([*lines, f"backprobe: {ended}{rest}"])


def _annotation(run: Reported, finding: Finding) -> str:
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
        where, message = {}, f"line {place.start_line} of unnamed {plain(run.unnamed)}: {message}"
    told = {**where, "title": f"{finding.rule.code} {finding.rule.name}"}
    properties = ",".join(f"{name}={_property(str(value))}" for name, value in told.items())
    return f"::{_COMMANDS[finding.level]} {properties}::{_text(message)}"


def _text(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _text(text).replace(":", "%3A").replace(",", "%2C")
