"""A rule's manual as text, and as Markdown."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from backprobe.rules.framework.manual import Manual


_FIXES: Final = {"safe": "offers safe fixes", "unsafe": "offers fixes to review", "manual": "to be fixed by hand"}


def render(manual: Manual) -> str:
    """Render the whole manual, without a newline at its end."""
    rule = manual.rule
    facts = f"{rule.severity}, {rule.confidence}; {_FIXES[rule.fix]}; since {rule.since}"
    lines = [f"{rule.code} {rule.name}: {manual.headline}", facts, ""]
    for section in manual.sections:
        about = f": {section.about}" if section.about else ""
        lines += [f"{section.title}{about}", textwrap.indent(section.text.rstrip("\n"), "    "), ""]
    return "\n".join(lines).rstrip("\n")


def markdown(manual: Manual) -> str:
    """Write the sections of the manual as Markdown, each under a heading of the third level; programs in fences."""
    parts: list[str] = []
    for section in manual.sections:
        title = f"{section.title}: {section.about}" if section.about else section.title
        body = f"```python\n{section.text}```" if section.is_code else section.text.rstrip()
        parts.append(f"### {title}\n\n{body}")
    return "\n\n".join(parts)
