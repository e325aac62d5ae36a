"""BP908 unused-suppression: a comment hides a finding that is not there.

What it finds:
    A `# backprobe: ignore[...]` names a rule that judged this run and found nothing in what the comment covers, which
    did run.

Why it matters:
    It would hide the next mistake of that kind without a word.

Blind spots:
    Lines that this run did not reach, and rules that could not judge it, prove nothing; their comments are left alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backprobe.rules.framework.finding import Finding, Fix, rule_name
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.rules.framework.finding import Location

RULE = Rule(
    name="unused-suppression",
    code="BP908",
    since="0.1",
    severity="note",
    confidence="proven",
    rests_on="run",
    fix="manual",
    needs=(),
)


def named(name: str, place: Location) -> Finding:
    """The finding for one name in one comment."""
    return Finding(
        rule=rule_name(RULE),
        level=RULE.severity,
        confidence=RULE.confidence,
        message=f"This comment hides `{name}`, which found nothing here.\nRemove it: it would hide the next one.",
        location=place,
        evidence={"binding": name},
        fixes=(Fix(title="Remove the comment", safety="manual"),),
    )
