"""BP903 findings-left-out: a rule has so many findings in one run that only the first ones are told.

What it finds:
    More than 500 findings of one rule in one run. The first 500 in order of the source are told.

Why it matters:
    The run has more lines with this finding than the report names.

Blind spots:
    How many more there are is not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from backprobe.rules.framework.finding import Finding, RuleName, rule_name
from backprobe.rules.framework.rule import Rule

RULE = Rule(
    name="findings-left-out", code="BP903", since="0.1", severity="note", confidence="proven", fix="manual", needs=()
)

MOST: Final = 500
"""Findings of one rule in one run: a page of them is not read to its end, and each costs a row of the database."""


def first_of_each_rule(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the first `MOST` findings of each rule, and one of this rule for each rule that has more."""
    counts: Counter[RuleName] = Counter()
    for finding in findings:
        counts[finding.rule] += 1
        if counts[finding.rule] <= MOST:
            yield finding
        elif counts[finding.rule] == MOST + 1:
            yield _finding(finding)


def _finding(first_left_out: Finding) -> Finding:
    rule = first_left_out.rule
    return Finding(
        rule=rule_name(RULE),
        level=RULE.severity,
        confidence=RULE.confidence,
        message=f"`{rule.name}` ({rule.code}) has more than {MOST} findings in this run; the first {MOST} are told.",
        location=first_left_out.location,
        evidence={"binding": rule.name},
    )
