"""BP902 rule-failed: a rule of Backprobe's own broke on this record.

What it finds:
    A rule raised an exception while it judged, or a plug-in's rules could not be loaded. Only the exception's class and
    the rule or plug-in are named: its text may carry what the program printed.

Why it matters:
    That rule did not judge: its silence means nothing here. All other rules ran.

Blind spots:
    Nothing is wrong with the program. Report the rule and the class of the exception to the rule's authors: Backprobe's
    if its code begins with BP. `backprobe rules` says why a plug-in cannot be loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backprobe.rules.framework.finding import Finding, Location, Region, rule_name
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record

RULE = Rule(name="rule-failed", code="BP902", since="0.1", severity="note", confidence="proven", fix="manual", needs=())


def failure(record: Record, rule: Rule, error: Exception) -> Finding:
    """The finding that stands for a rule that broke."""
    said = f"Rule `{rule.name}` ({rule.code}) broke with {type(error).__name__} and did not judge this run."
    return _finding(record, said, rule.name, type(error).__name__)


def plug_in_failure(record: Record, name: str, error: str) -> Finding:
    """The finding that stands for a plug-in that could not be loaded; `error` is the class of the exception."""
    said = f"The rules of the plug-in `{name}` could not be loaded ({error}) and did not judge this run."
    return _finding(record, said, name, error)


def _finding(record: Record, message: str, binding: str, error: str) -> Finding:
    path = record.sources[0].path if record.sources else "<unknown>"
    start = Region(start_line=1, start_col=1, end_line=1, end_col=1)
    return Finding(
        rule=rule_name(RULE),
        level=RULE.severity,
        confidence=RULE.confidence,
        message=message,
        location=Location(path=path, region=start),
        evidence={"binding": binding, "exception": error},
    )
