"""Findings as cards: the line and its evidence first, then why, then the fix as a diff."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from backprobe.show.evidence import with_calls_from_one
from backprobe.show.first_occurrence import first_seen
from backprobe.show.formats.finding_text import called_from
from backprobe.show.plain_text import cut, plain
from service.dashboard.words import Prose, name, prose

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from backprobe.rules.framework.finding import Edit, Finding, Fix, Location
    from store.findings.findings import FindingRow

_LONGEST_VALUE: Final = 300
_MOST_LISTED: Final = 8
_MOST_DIFF: Final = 60
_MOST_TOUCHED: Final = 4000
"""Lines of a file beyond which a fix is described without a diff: a diff is quadratic at worst."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A line of the program, cut in three so that the middle can be marked."""

    path: str
    line: int
    before: str
    marked: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Another place of the story."""

    message: Prose
    path: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FixShown:
    """A fix: its title, whether it may be applied unseen, and its diff as (added or removed, text)."""

    title: Prose
    safety: str
    diff: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One finding.

    Attributes:
        why: The lines of its message. seen: when it was first seen, "" in a run of one step.
        called: The calls that led to its function, in a line; "": the user's files did not call it.
        call: Its backward call, from 0; None: of none, or of several.
        tensor: The one that it is about; None: none alone. tensors: those whose gradient it explains, itself included.
    """

    id: str
    code: str
    rule: str
    url: str
    level: str
    confidence: str
    place: Place
    why: tuple[Prose, ...]
    evidence: tuple[tuple[str, str], ...]
    related: tuple[Step, ...]
    fixes: tuple[FixShown, ...]
    consequences: tuple[str, ...]
    times: int
    suppressed: bool
    call: int | None
    tensor: int | None
    tensors: tuple[int, ...]
    seen: str
    called: str


def card(row: FindingRow, lines: Callable[[str], Sequence[str] | None], steps: int | None = None) -> Card:
    """Prepare a finding to be drawn. Strangers' texts are made visible here; the template escapes them.

    Args:
        row: The stored finding.
        lines: The lines of a file of the snippet, by its path; None: no such file.
        steps: How many the run made; None: not known.
    """
    finding: Finding = row.finding
    return Card(
        id=row.id,
        code=name(finding.rule.code),
        rule=name(finding.rule.name),
        url=f"/rules/{finding.rule.code}",
        level=finding.level,
        confidence=finding.confidence,
        place=_place(finding.location),
        why=tuple(prose(line) for line in finding.message.split("\n") if line.strip()),
        evidence=tuple(_fact(key, value) for key, value in finding.evidence.items() if value not in ("", [], None)),
        related=tuple(
            Step(message=prose(step.message), path=name(step.location.path), line=step.location.region.start_line)
            for step in finding.related
        ),
        fixes=tuple(_fix(fix, lines) for fix in finding.fixes),
        consequences=tuple(f"{name(c.rule)}, line {c.location.region.start_line}" for c in finding.consequences),
        times=finding.occurrences.count,
        suppressed=finding.suppressed is not None,
        seen=first_seen(finding, steps),
        called=called_from(finding),
        call=_call_of(finding),
        tensor=tensor if isinstance(tensor := finding.evidence.get("tensor"), int) else None,
        tensors=list_evidence_tensors(finding),
    )


def _call_of(finding: Finding) -> int | None:
    """Return the backward call that its evidence names."""
    calls = [finding.evidence.get(key) for key in ("backward_call", "call")]
    return next((call for call in calls if isinstance(call, int) and not isinstance(call, bool)), None)


def list_evidence_tensors(finding: Finding) -> tuple[int, ...]:
    """Tensors of its evidence: the one that it is about, and those that got no gradient because of it."""
    without: Any = finding.evidence.get("without_gradient")
    listed = [finding.evidence.get("tensor"), *(without if isinstance(without, list | tuple) else ())]
    return tuple(dict.fromkeys(number for number in listed if isinstance(number, int) and not isinstance(number, bool)))


def _fact(key: str, value: object) -> tuple[str, str]:
    return name(key.replace("_", " ")), cut(plain(_value(with_calls_from_one(key, value))), _LONGEST_VALUE)


def _value(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join([*map(str, value[:_MOST_LISTED]), *(["…"] if len(value) > _MOST_LISTED else [])])
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def _place(location: Location) -> Place:
    region, text = location.region, location.text
    start = min(len(text), region.start_col - 1)
    end = region.end_col - 1 if region.end_line == region.start_line else len(text)
    end = max(start, min(len(text), end))
    return Place(
        path=name(location.path),
        line=region.start_line,
        before=cut(plain(text[:start], tab="\t"), 400),
        marked=cut(plain(text[start:end], tab="\t"), 400),
        after=cut(plain(text[end:], tab="\t"), 400),
    )


def _fix(fix: Fix, lines: Callable[[str], Sequence[str] | None]) -> FixShown:
    shown: list[tuple[str, str]] = []
    for path in dict.fromkeys(edit.path for edit in fix.edits):
        before = lines(path)
        if before is None or len(before) > _MOST_TOUCHED:
            continue
        after = _apply_edits(before, [edit for edit in fix.edits if edit.path == path])
        shown += _diff(before, after)
    return FixShown(title=prose(fix.title), safety=fix.safety, diff=tuple(shown[:_MOST_DIFF]))


def _diff(before: Sequence[str], after: Sequence[str]) -> list[tuple[str, str]]:
    kinds = {"-": "removed", "+": "added"}
    matcher = difflib.SequenceMatcher(a=before, b=after, autojunk=False)
    found: list[tuple[str, str]] = []
    for tag, a_from, a_to, b_from, b_to in matcher.get_opcodes():
        if tag != "equal":
            found += [(kinds["-"], cut(plain(line, tab="\t"), 400)) for line in before[a_from:a_to]]
            found += [(kinds["+"], cut(plain(line, tab="\t"), 400)) for line in after[b_from:b_to]]
    return found


def _apply_edits(lines: Sequence[str], edits: Sequence[Edit]) -> list[str]:
    """Apply the edits to the lines, last one first so that the others' places stay right."""
    text = [f"{line}\n" for line in lines]
    starts = [0]
    for line in text:
        starts.append(starts[-1] + len(line))
    whole = "".join(text)

    def to_offset(line: int, col: int) -> int:
        row = min(max(line, 1), len(starts)) - 1
        return min(starts[row] + col - 1, len(whole))

    for edit in sorted(edits, key=lambda e: (e.region.start_line, e.region.start_col), reverse=True):
        start = to_offset(edit.region.start_line, edit.region.start_col)
        end = max(start, to_offset(edit.region.end_line, edit.region.end_col))
        whole = whole[:start] + edit.text + whole[end:]
    return whole.split("\n")[:-1] if whole.endswith("\n") else whole.split("\n")
