"""What a record does not show, and so what may be called proven: the only place that decides it.

A finding is proven if three things hold; without one of them it is at most likely.

1. Its rule assumes nothing about what the program is meant to do, and has no threshold: `Rule.confidence`.
2. Nothing that could speak against it went unseen. Until its first occurrence the record has no gap; for a rule that
   says what never happens, or always does, the record has none at all and the program came to its end: `Rule.rests_on`.
3. The text of the program is there, since rules read what the program is written to do.

A gap is a step that was not captured in full, rows that a cap left out, a backward call that was not walked whole, or
an error of the recorder.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.syntax import trees
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Record, Source
    from backprobe.rules.framework.finding import Finding
    from backprobe.rules.framework.rule import Rule

BINDINGS_IN_FULL: Final = 50
"""Of one name at one statement so many bindings are kept, later ones at 1-2-5 per decade: `Caps.site_times`."""

_NO_GAP: Final = frozenset({"child processes", "followed child processes", "anomalies", "rows of steps"})
"""Truncations of other processes, and those of steps, which the rows of steps tell themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A part of a run that the record does not show.

    Attributes:
        moment: The first moment at which it may be missing. why: what is missing, as a clause.
    """

    moment: int
    why: str


def is_proven(record: Record, rule: Rule, finding: Finding) -> bool:
    """Whether a finding of a rule is proven by its record."""
    return finding.confidence == "proven" and what_went_unseen(record, rule, finding) is None


def what_went_unseen(record: Record, rule: Rule, finding: Finding) -> str | None:
    """What the record lacks that could speak against a finding, as a clause; None if it lacks nothing."""
    lost = lost_source(record)
    if lost is not None:
        return lost
    gap = first_gap(record)
    if rule.rests_on == "run":
        return gap.why if gap is not None else None if is_whole_run(record) else "the program did not come to its end"
    return gap.why if gap is not None and gap.moment <= _settled_at(record, finding) else None


def _settled_at(record: Record, finding: Finding) -> int:
    """The moment at which all has happened that a finding tells of: the mistake and its first backward call."""
    calls = (lookup(record).calls[number].moment_before for kind, number in finding.subject.facts if kind == "call")
    return max(finding.subject.moment, min(calls, default=0))


@table
def first_gap(record: Record) -> Gap | None:
    """The first part of the run that the record does not show; None if it shows all, as far as it goes."""
    return min(_gaps(record), key=lambda gap: gap.moment, default=None)


def _gaps(record: Record) -> Iterator[Gap]:
    if record.end is not None and record.end.own_errors:
        yield Gap(moment=0, why="the recorder made an error")
    for row in record.truncations:
        if row.what not in _NO_GAP:
            moment = _first_thinned(record) if row.what == "bindings" and row.moment is None else row.moment
            yield Gap(moment=moment or 0, why=f"a cap left out {row.what}")
    for call in record.backward_calls:
        if not is_walked_whole(call):
            yield Gap(moment=call.moment_before, why=f"backward call {call.call} was not walked whole")
    step = first_step_unseen(record)
    if step is not None:
        before = (row.last_moment for row in record.steps if row.step < step and row.last_moment is not None)
        # what is told of the step itself, an exception say, has the last moment before it
        yield Gap(moment=max(before, default=0), why=f"step {step} was not captured in full")


def is_walked_whole(call: BackwardCall) -> bool:
    """Whether all that a backward call did is in the record: what it is not seen to walk, it did not walk."""
    return not call.truncated and call.entry != "unseen"


def _first_thinned(record: Record) -> int | None:
    """The moment at which a statement has had all the bindings that are kept before they thin out."""
    times: Counter[tuple[int, str]] = Counter()
    for row in record.bindings:
        times[row.site, row.name] += 1
        if times[row.site, row.name] == BINDINGS_IN_FULL:
            return row.moment
    return None


def first_step_unseen(record: Record) -> int | None:
    """The first step that was not captured in full from its begin; None if each one was."""
    for expected, row in enumerate(record.steps):
        if row.step != expected:
            return expected
        if not row.sampled or row.why == "loop-left":
            return row.step
    return None


@table
def lost_source(record: Record) -> str | None:
    """Which file's text is not in the record as it was run, as a clause; None if each one is."""
    row = next(_sources_not_whole(record), None)
    return None if row is None else f"the text of {row.path} is not whole in the record"


def text_not_parsed(record: Record) -> str | None:
    """Why what a rule asks of the program's text has no answer; None if each file is there, if with parts left out."""
    named = {site.source for site in record.sites}
    lost = (
        row
        for row in _sources_not_whole(record)
        if row.source in named and (not row.text or row.source not in trees(record))
    )
    row = next(lost, None)
    return None if row is None else f"needs the text of {row.path}, which is not in the record"


def _sources_not_whole(record: Record) -> Iterator[Source]:
    """The files whose text is not what was run."""
    for row in record.sources:
        if row.sha256 and hashlib.sha256(row.text.encode("utf-8", "surrogatepass")).hexdigest() != row.sha256:
            yield row


@table
def is_whole_run(record: Record) -> bool:
    """The program came to its end, no cap bit, every backward call was walked, and the recorder made no error.

    Steps between the sampled ones are not asked for.
    """
    end = record.end
    if end is None or end.exit_code != 0 or end.own_errors or record.truncated or record.header.tier == "state":
        return False
    return not any(call.truncated or call.entry == "unseen" for call in record.backward_calls)
