"""BP909 unknown-suppression: a comment names a rule that does not exist, or names none.

What it finds:
    A `# backprobe: ignore` without brackets, with a name in its brackets that no rule has, or with more names than are
    read.

Why it matters:
    It hides nothing, though its author thinks it does.

Blind spots:
    After 1,000 findings about comments the rest of the comments is not looked at.
    The rules of a plug-in that is not installed here are unknown, too.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from backprobe.rules.framework.finding import Finding, Fix, rule_name
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.rules.framework.finding import Location

RULE = Rule(
    name="unknown-suppression", code="BP909", since="0.1", severity="warning", confidence="proven", fix="manual",
    needs=(),
)  # fmt: skip


def named(name: str, place: Location) -> Finding | None:
    """The finding for a name in a comment; None where a rule has that name."""
    from backprobe.rules.framework.manual import every_rule  # it lists this module's rule as well

    names = {rule.name: rule.code for rule in every_rule()}
    if name in names:
        return None
    by_code = next((known for known, code in names.items() if code == name.upper()), None)
    near = [by_code] if by_code else difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"Did you mean `{near[0]}`?" if near else "`backprobe rules` lists the names."
    said = f"`{name}` is a code; comments name rules" if by_code else f"There is no rule `{name}`"
    return _finding(f"{said}, so this comment hides nothing. {hint}", name, place)


def without_brackets(place: Location) -> Finding:
    """The finding for a comment that names no rule."""
    said = "This comment names no rule, so it hides nothing. Write `# backprobe: ignore[NAME] -- reason`."
    return _finding(said, "", place)


def too_many(most: int, place: Location) -> Finding:
    """The finding for a comment that names more than `most` rules."""
    said = f"This comment names more than {most} rules. The rest is not read and hides nothing."
    return _finding(said, "", place)


def _finding(message: str, name: str, place: Location) -> Finding:
    return Finding(
        rule=rule_name(RULE),
        level=RULE.severity,
        confidence=RULE.confidence,
        message=message,
        location=place,
        evidence={"binding": name},
        fixes=(Fix(title="Name the rule", safety="manual"),),
    )
