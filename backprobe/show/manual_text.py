"""A rule's manual as text."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backprobe.rules.manual import Manual


def render(manual: Manual) -> str:
    """The whole manual, without a newline at its end."""
    rule = manual.rule
    facts = f"{rule.severity}, {rule.confidence}; fix: {rule.fix}; since {rule.since}"
    lines = [f"{rule.code} {rule.name}: {manual.headline}", facts, ""]
    for section in manual.sections:
        about = f": {section.about}" if section.about else ""
        lines += [f"{section.title}{about}", textwrap.indent(section.text.rstrip("\n"), "    "), ""]
    return "\n".join(lines).rstrip("\n")
