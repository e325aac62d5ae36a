"""The calls that led to the function in which a finding lies: from the stacks of the record's moments."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.finding import Finding, Stack, StackFrame
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Moment, Record, Site

ROLE = "call"
"""Of such a stack: its innermost frame is the finding's own place."""


def with_call_stacks(record: Record, findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings; one in a function that the user's files called has the calls that led there."""
    return [_with_stack(record, finding) for finding in findings]


def _with_stack(record: Record, finding: Finding) -> Finding:
    stack = _stack_of(record, finding)
    frames = () if stack is None else tuple(_frame(record, site) for site in reversed(calls(record, stack)))
    if not frames:
        return finding
    place = finding.location
    own = StackFrame(path=place.path, line=place.region.start_line, function=place.function)
    return msgspec.structs.replace(finding, stacks=(*finding.stacks, Stack(role=ROLE, frames=(*frames, own))))


def calls(record: Record, stack: int) -> Sequence[Site]:
    """Return the statements of a stack that called, the innermost first; of a torn record as many as are there."""
    known, index = _stacks(record), lookup(record)
    found: list[Site] = []
    number: int | None = stack
    while number is not None and number in known:
        at, number = known[number]
        site = index.sites.get(at)
        if site is None or site.source not in index.sources:
            break
        found.append(site)
    return found


def is_called_by(record: Record, moment: int, site: int | None) -> bool:
    """Return whether the statement of a moment ran in a call that another statement made, or in a call within that."""
    row = lookup(record).moments.get(moment)
    return row is not None and row.stack is not None and any(above.site == site for above in calls(record, row.stack))


def _stack_of(record: Record, finding: Finding) -> int | None:
    """Return the stack of the moment that a finding is about; else the only one that its line, or function, ran under.

    None: the finding is at a top level, or several callers are possible.
    """
    place = finding.location
    rows = _moments_in(record).get((place.path, place.function), [])
    about = next((row for row in rows if row.moment == finding.subject.moment), None)
    if about is not None:
        return about.stack
    lines = range(place.region.start_line, place.region.end_line + 1)
    sites = lookup(record).sites
    here = {row.stack for row in rows if row.site is not None and sites[row.site].line in lines}
    found = here or {row.stack for row in rows}
    return found.pop() if len(found) == 1 else None


def _frame(record: Record, site: Site) -> StackFrame:
    return StackFrame(path=lookup(record).sources[site.source].path, line=site.line, function=site.function)


@table
def _stacks(record: Record) -> Mapping[int, tuple[int, int | None]]:
    return {row.stack: (row.site, row.parent) for row in record.stacks}


@table
def _moments_in(record: Record) -> Mapping[tuple[str, str], list[Moment]]:
    """Return the moments in each function, by path and qualified name."""
    index = lookup(record)
    found: defaultdict[tuple[str, str], list[Moment]] = defaultdict(list)
    for row in record.moments:
        site = None if row.site is None else index.sites.get(row.site)
        if site is not None and site.source in index.sources:
            found[index.sources[site.source].path, site.function].append(row)
    return found
