"""One line per finding, as compilers' logs have it: `train.py:2:5: non-leaf-grad-read BP101 warning: ...`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backprobe.show.formats.terminal_report import summary
from backprobe.show.plain_text import plain

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.judge import Judgement


def render(record: Record, judgement: Judgement) -> str:
    """The findings, each on a line, and the summary."""
    lines: list[str] = []
    for finding in judgement.findings:
        if finding.suppressed is None:
            place, rule = finding.location, finding.rule
            at = f"{plain(place.path)}:{place.region.start_line}:{place.region.start_col}"
            message = plain(finding.message.split("\n")[0])
            lines.append(f"{at}: {rule.name} {rule.code} {finding.level}: {message}")
    return "\n".join([*lines, summary(record, judgement)])
