"""An audit for a terminal: each program that does not pass with its findings, and the matrix in counts.

fail     jobs/gpt.py
         jobs/gpt.py:12:5: non-leaf-grad-read BP101 warning: `w` is not a leaf ...
           fix (safe): Keep the gradient of `w`; tried: confirmed
not-run  jobs/big.py: exceeded

pre-merge failed: 1 fail, 1 not-run, 10 pass; 1 finding
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import msgspec

from backprobe.rules import Finding
from backprobe.rules.policy import WORST
from backprobe.show.audits.report import AuditedItem, AuditReport
from backprobe.show.plain_text import plain
from backprobe.show.trial_words import trial_words

MOST_FINDINGS: Final = 20
"""Of one program."""

_INDENT: Final = " " * 9
"""A verdict and a blank."""


def render(report: AuditReport) -> str:
    """Render the text, without a newline at its end."""
    blocks = [_item(item) for word in WORST for item in report.items if (item.verdict or "not-run") == word != "pass"]
    rules = Counter(cell.rule for item in report.items for cell in item.cells if cell.state in ("fail", "warn"))
    lines = [f"  {count:>4}  {plain(rule)}" for rule, count in rules.most_common()]
    table = "\n".join(["programs by rule", *lines]) if lines else ""
    return "\n\n".join(part for part in ("\n".join(blocks), table, summary(report)) if part)


def summary(report: AuditReport) -> str:
    """Summarize the audit in a line or two."""
    counts = ", ".join(f"{count} {word}" for word, count in report.counts().items())
    found = len(report.findings)
    said = f"{found} finding{'' if found == 1 else 's'}"
    if report.new is not None:
        said += f" ({report.new} new, {report.known} known, {report.gone} gone)"
    where = f"\n{plain(report.url)}" if report.url else ""
    return f"{plain(report.name)} {report.word}: {counts or 'nothing was judged'}; {said}{where}"


def _item(item: AuditedItem) -> str:
    why = f": {_why(item)}" if item.verdict in ("error", "not-run", None) else ""
    head = f"{item.verdict or 'not-run':<8} {plain(item.name)}{why}"
    found = [finding for finding in item.reported.findings if finding.suppressed is None]
    lines = [
        f"{_INDENT}{line}"
        for finding in found[:MOST_FINDINGS]
        for line in (_line(item, finding), *_list_trials(finding))
    ]
    if len(found) > MOST_FINDINGS:
        lines.append(f"{_INDENT}and {len(found) - MOST_FINDINGS} more")
    return "\n".join([head, *lines])


def _why(item: AuditedItem) -> str:
    if item.problem is not None:
        return plain(item.problem)
    code = item.reported.exit_code
    return plain(item.reported.ending) + (f", exit code {code}" if code else "")


def _list_trials(finding: Finding) -> Iterator[str]:
    """Yield the verdicts of its fixes, where they were tried."""
    for fix in finding.fixes:
        if fix.trial is not msgspec.UNSET:
            why = f" ({fix.trial.why})" if fix.trial.why else ""
            yield f"  fix ({fix.safety}): {plain(fix.title)}; {trial_words(fix.trial)}{plain(why)}"


def _line(item: AuditedItem, finding: Finding) -> str:
    place, told = finding.location, item.reported
    age = "" if told.known is None else " (known)" if told.is_known(finding) else " (new)"
    at = f"{plain(place.path)}:{place.region.start_line}:{place.region.start_col}"
    message = plain(finding.message.partition("\n")[0])
    return f"{at}: {finding.rule.name} {finding.rule.code} {finding.level}{age}: {message}"
