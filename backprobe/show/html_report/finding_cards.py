"""The findings of the report as cards: the line, when, why, and the fix as a diff."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from backprobe.severity import LEVELS
from backprobe.show.amounts import count_noun
from backprobe.show.first_occurrence import first_seen
from backprobe.show.formats.finding_text import called_from, changed_lines, source_of
from backprobe.show.html_report.markup import Html, name, prose, tag, text
from backprobe.show.html_report.panes import pane
from backprobe.show.plain_text import cut
from backprobe.show.tensor_table import count_of_tensors
from backprobe.show.trial_words import trial_words

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding, Fix

MOST_FINDINGS: Final = 50
MOST_CHANGES: Final = 60
"""Lines of one fix."""

MOST_TOUCHED: Final = 4000
"""Beyond this number of lines of a file a fix is described, not drawn: a diff is quadratic at worst."""


def findings_pane(record: Record, findings: Sequence[Finding], steps: int, judged: int) -> Html:
    """Write the findings, the worst first as they come."""
    if not findings:
        said = f"{count_noun(count_of_tensors(record), 'tensor')} captured, {count_noun(judged, 'rule')} judged."
        calm = tag("div", tag("p", tag("strong", "No findings."), " ", said), class_="inner calm")
        return pane("findings", "Findings", "", calm)
    shown = [_finding(record, finding, steps) for finding in findings[:MOST_FINDINGS]]
    levels = Counter(finding.level for finding in findings)
    total = ", ".join(count_noun(levels[level], level) for level in LEVELS if levels[level])
    more = len(findings) - len(shown)
    hidden = f"{count_noun(more, 'more finding')}: `--format json` has all."
    left = tag("p", hidden, class_="said-below") if more else None
    return pane("findings", "Findings", total, tag("ul", *shown, class_="findings holds", tabindex="0"), left)


def _finding(record: Record, finding: Finding, steps: int) -> Html:
    place, tensor = finding.location, finding.evidence.get("tensor")
    seen, called = first_seen(finding, steps), called_from(finding)
    related = [
        tag(
            "li",
            tag("a", f"line {step.location.region.start_line}", href=f"#L{step.location.region.start_line}"),
            ": ",
            prose(step.message),
        )
        for step in finding.related
    ]
    return tag(
        "li",
        tag(
            "div",
            tag("h3", name(finding.rule.name)),
            tag("span", finding.level, class_="badge"),
            tag("span", finding.confidence, class_="badge"),
            tag("span", finding.rule.code, class_="mono"),
            class_="name",
        ),
        tag(
            "a",
            tag("span", place.region.start_line, class_="number"),
            text(cut(place.text, 400)),
            class_="at mono",
            href=f"#L{place.region.start_line}",
        ),
        tag("p", text(cut(called, 400)), class_="seen") if called else None,
        tag("p", seen, class_="seen") if seen else None,
        *(tag("p", prose(line), class_="why") for line in finding.message.split("\n") if line.strip()),
        tag("ul", *related, class_="related") if related else None,
        *(_fix(record, fix) for fix in finding.fixes),
        class_=finding.level,
        data_line=place.region.start_line,
        data_with_t=tensor if isinstance(tensor, int) else None,
    )


def _fix(record: Record, fix: Fix) -> Html:
    shown = list(islice(_changes(record, fix), MOST_CHANGES))
    head = tag("h4", "Fix: ", prose(fix.title), " ", tag("span", fix.safety, class_="badge"))
    trial = None if fix.trial is UNSET else f"{trial_words(fix.trial)}{f': {fix.trial.why}' if fix.trial.why else ''}"
    tried = tag("p", text(cut(trial, 400)), class_="why") if trial else None
    return tag("div", head, tag("div", *shown, class_="diff") if shown else None, tried, class_="fix")


def _changes(record: Record, fix: Fix) -> Iterator[Html]:
    for path in dict.fromkeys(edit.path for edit in fix.edits):
        lines = source_of(record, path)
        if lines is None or len(lines) > MOST_TOUCHED:
            continue
        for sign, line in changed_lines(lines, [edit for edit in fix.edits if edit.path == path]):
            kind = "removed" if sign == "-" else "added"
            yield tag("div", tag("span", f"{kind}: ", class_="hidden"), text(cut(line, 400), block=True), class_=kind)
