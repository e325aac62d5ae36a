"""The findings of the report as cards: the line, when, why, and the fix as a diff."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from backprobe.severity import LEVELS
from backprobe.show.amounts import counted
from backprobe.show.first_occurrence import first_seen
from backprobe.show.formats.finding_text import changed_lines, source_of
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
"""Lines of a file beyond which a fix is told, not drawn: a diff is quadratic at worst."""


def findings_pane(record: Record, findings: Sequence[Finding], steps: int, judged: int) -> Html:
    """The findings, the worst first as they come."""
    if not findings:
        said = f"{counted(count_of_tensors(record), 'tensor')} captured, {counted(judged, 'rule')} judged."
        calm = tag("div", tag("p", tag("strong", "No findings."), " ", said), class_="inner calm")
        return pane("findings", "Findings", "", calm)
    shown = [_finding(record, one, steps) for one in findings[:MOST_FINDINGS]]
    levels = Counter(one.level for one in findings)
    total = ", ".join(counted(levels[level], level) for level in LEVELS if levels[level])
    more = len(findings) - len(shown)
    left = tag("p", f"{counted(more, 'more finding')}: `--format json` has all.", class_="said-below") if more else None
    return pane("findings", "Findings", total, tag("ul", *shown, class_="findings holds", tabindex="0"), left)


def _finding(record: Record, one: Finding, steps: int) -> Html:
    place, tensor = one.location, one.evidence.get("tensor")
    seen = first_seen(one, steps)
    related = [
        tag(
            "li",
            tag("a", f"line {step.location.region.start_line}", href=f"#L{step.location.region.start_line}"),
            ": ",
            prose(step.message),
        )
        for step in one.related
    ]
    return tag(
        "li",
        tag(
            "div",
            tag("h3", name(one.rule.name)),
            tag("span", one.level, class_="badge"),
            tag("span", one.confidence, class_="badge"),
            tag("span", one.rule.code, class_="mono"),
            class_="name",
        ),
        tag(
            "a",
            tag("span", place.region.start_line, class_="number"),
            text(cut(place.text, 400)),
            class_="at mono",
            href=f"#L{place.region.start_line}",
        ),
        tag("p", seen, class_="seen") if seen else None,
        *(tag("p", prose(line), class_="why") for line in one.message.split("\n") if line.strip()),
        tag("ul", *related, class_="related") if related else None,
        *(_fix(record, fix) for fix in one.fixes),
        class_=one.level,
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
