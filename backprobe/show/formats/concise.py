"""One line per finding, as in compiler logs: `train.py:2:5: non-leaf-grad-read BP101 warning: ...`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backprobe.show.check_lines import checks_line
from backprobe.show.formats.terminal_report import summary
from backprobe.show.plain_text import plain

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.judge import Judgement


def render(record: Record, judgement: Judgement) -> str:
    """Return each finding on a line, and the summary; without a finding also what was checked and what was not."""
    lines: list[str] = []
    for finding in judgement.findings:
        if finding.suppressed is None:
            place, rule = finding.location, finding.rule
            at = f"{plain(place.path)}:{place.region.start_line}:{place.region.start_col}"
            message = plain(finding.message.split("\n")[0])
            lines.append(f"{at}: {rule.name} {rule.code} {finding.level}: {message}")
    checked = [] if lines else [checks_line(judgement.checks)]
    return "\n".join([*lines, summary(record, judgement), *filter(None, checked)])
