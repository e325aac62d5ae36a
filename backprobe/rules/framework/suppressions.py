"""Findings that a comment in the source hides, comments that hide nothing, and comments that name no rule.

A comment is unused only if the run executed what it covers and judged the rule it names: a run that did not go there
knows nothing about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.finding import Finding, Location, Region, Suppression
from backprobe.rules.framework.locations import line_text
from backprobe.rules.framework.suppression_comments import MOST_NAMES, Comment, comments
from backprobe.rules.framework.tables import table
from backprobe.rules.health import unknown_suppression, unused_suppression
from backprobe.rules.health.findings_left_out import MOST, first_of_each_rule

if TYPE_CHECKING:
    from backprobe.record import Record


def suppressed(record: Record, findings: Iterable[Finding], judged: Iterable[str]) -> list[Finding]:
    """The findings, those hidden that a comment covers, and what there is to say of the comments themselves.

    Args:
        judged: Names of the rules that judged this record.
    """
    written = comments(record)
    if not written:
        return list(findings)
    numbers = {source.path: source.source for source in record.sources}
    used: set[tuple[Comment, str]] = set()
    kept: list[Finding] = []
    for finding in findings:
        source = numbers.get(finding.location.path, -1)
        line, name = finding.location.region.start_line, finding.rule.name
        hiding = [comment for comment in written if name in comment.names and comment.covers(source, line)]
        used.update((comment, name) for comment in hiding)
        if hiding:
            finding = msgspec.structs.replace(  # noqa: PLW2901 - the same finding, hidden
                finding, suppressed=Suppression(kind="inSource", reason=hiding[0].reason)
            )
        kept.append(finding)
    about = islice(_about(record, written, used, frozenset(judged)), 2 * MOST + 1)
    return [*kept, *first_of_each_rule(about)]


def _about(
    record: Record, written: Sequence[Comment], used: set[tuple[Comment, str]], judged: frozenset[str]
) -> Iterator[Finding]:
    for comment in written:
        place = _place(record, comment)
        if not comment.names:
            yield unknown_suppression.without_brackets(place)
        if comment.has_more_names:
            yield unknown_suppression.too_many(MOST_NAMES, place)
        for name in comment.names:
            problem = unknown_suppression.named(name, place)
            if problem is not None:
                yield problem
            elif name in judged and (comment, name) not in used and _ran(record, comment):
                yield unused_suppression.named(name, place)


def _place(record: Record, comment: Comment) -> Location:
    text = line_text(record, comment.source, comment.line)
    region = Region(
        start_line=comment.line, start_col=comment.col, end_line=comment.line, end_col=max(len(text) + 1, comment.col)
    )
    return Location(path=lookup(record).sources[comment.source].path, region=region, text=text)


def _ran(record: Record, comment: Comment) -> bool:
    return any(comment.covers(source, line) for source, line in _lines_run(record))


@table
def _lines_run(record: Record) -> frozenset[tuple[int, int]]:
    """The first lines of the sites that something was recorded at."""
    sites = lookup(record).sites
    seen = {row.site for row in record.moments} | {row.site for row in record.backward_calls}
    seen |= {row.site for row in record.module_calls} | {row.site for row in record.bindings}
    return frozenset((sites[site].source, sites[site].line) for site in seen if site is not None)
