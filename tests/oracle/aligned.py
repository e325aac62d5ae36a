"""Which event of the truth each moment of a record is."""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from backprobe.record import Moment, Record
from tests.oracle.truth import Event, Truth

_PASSES = {"before-backward": "before", "after-backward": "left", "optimizer-step": "step", "end": "end"}
TRIES = 200
_PLAIN = frozenset({"after", "block", "match"})
_OWN = frozenset({"enter", "return", "for"})


@dataclass(slots=True)
class Aligned:
    """By moment the index of its event; `strays` are moments that no event accounts for, as text."""

    events: list[int]
    strays: list[str]
    matched: dict[int, int]


def head_lines(source: str) -> frozenset[int]:
    """The last lines of the expressions that stand before a block."""
    found: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        for field in ("test", "iter", "subject", "target"):
            part = getattr(node, field, None)
            if isinstance(part, ast.expr) and isinstance(node, (ast.If, ast.While, ast.For, ast.Match)):
                found.add(part.end_lineno or 0)
        if isinstance(node, ast.With):
            found.update(item.context_expr.end_lineno or 0 for item in node.items)
    return frozenset(found)


def _must(event: Event) -> bool:
    """The record has a moment for this event whatever happened there."""
    return event.kind in ("before", "left", "step", "end") or (
        event.function == "<module>" and event.kind in ("after", "block", "for")
    )


def aligned(record: Record, found: Truth, source: str) -> Aligned:
    """Match the moments of a record with the events of a plain run, in order.

    Where a statement has more moments than ends, as where one raised after a switch inside of it, which of them are the
    switches' is tried out; the first choice that leaves nothing over counts.
    """
    first: Aligned | None = None
    for spare in itertools.islice(_switches(record, found.events), TRIES):
        aligned = _aligned(record, found, source, spare)
        if not aligned.strays:
            return aligned
        first = first or aligned
    assert first is not None
    return first


def _aligned(record: Record, found: Truth, source: str, spare: set[int]) -> Aligned:
    heads, events, out = head_lines(source), found.events, Aligned([], [], {})
    moments, at = record.moments, 0
    bare = {call.moment_before for call in record.backward_calls if call.moment_before == call.moment_after}
    transforms = [call for call in record.backward_calls if call.entry == "func.grad"]  # no call of the engine's entry
    bare |= {moment for call in transforms for moment in (call.moment_before, call.moment_after) if moment is not None}
    bare |= spare
    for index, moment in enumerate(moments):
        if moment.moment in bare:
            out.events.append(min(at, len(events) - 1))
            continue
        following = moments[index + 1] if index + 1 < len(moments) else None
        place = None if _is_part(record, moment, following) else _search(record, moment, events, at)
        if place is None:
            out.events.append(min(at, len(events) - 1))
            if not _is_part(record, moment, following) and not _is_unfinished(record, moment, heads):
                out.strays.append(
                    f"a moment {moment.kind} at line {_line(record, moment)} that no statement accounts for"
                )
            continue
        for part in range(len(out.events) - 1, -1, -1):
            if not _is_part(record, moments[part], moments[part + 1]):
                break
            out.events[part] = place
        out.strays += [f"no moment for {event.kind} at line {event.line}" for event in events[at:place] if _must(event)]
        out.events.append(place)
        out.matched[moment.moment] = place
        at = place + 1
    out.strays += [f"no moment for {event.kind} at line {event.line}" for event in events[at:] if _must(event)]
    return out


def _switches(record: Record, events: list[Event]) -> Iterator[set[int]]:
    """Moments that a switch, a watched call or a hook made inside of a statement, which has a moment at its end.

    A walrus has a moment too, which is none to choose from.
    """
    kept = [event for event in events if event.kind in _PLAIN | _OWN]
    ends = Counter((event.line, event.function, event.kind if event.kind in _OWN else "") for event in kept)
    pairs = itertools.zip_longest(record.moments, record.moments[1:])
    made = [m for m, following in pairs if m.kind == "after-statement" and not _is_part(record, m, following)]
    made = [m for m in made if m.site is not None]
    there = Counter(_place(record, m) for m in made)
    switched = {row.moment for rows in (record.modes, record.watched_calls, record.hooks) for row in rows}
    switched |= {mode.until for mode in record.modes}
    inside: dict[tuple[int, str, str], list[int]] = {}
    for moment in made:
        key = _place(record, moment)
        if moment.moment in switched and there[key] > ends[key]:
            inside.setdefault(key, []).append(moment.moment)
    choices = [
        itertools.combinations(candidates, min(there[key] - ends[key], len(candidates)))
        for key, candidates in inside.items()
    ]
    yield set()
    for chosen in itertools.product(*choices) if choices else ():
        yield {moment for moments in chosen for moment in moments}


def _place(record: Record, moment: Moment) -> tuple[int, str, str]:
    """Line, function, and what of a statement it is, "" for its end."""
    site = record.sites[moment.site or 0]
    return _line(record, moment), site.function, site.kind if site.kind in _OWN else ""


def _line(record: Record, moment: Moment) -> int:
    return 0 if moment.site is None else record.sites[moment.site].end_line


def _is_part(record: Record, moment: Moment, following: Moment | None) -> bool:
    """A walrus inside of the statement whose moment follows."""
    if following is None or moment.kind != "after-statement" or moment.site is None or following.site is None:
        return False
    site, other = record.sites[moment.site], record.sites[following.site]
    inside = other.line <= site.line and site.end_line == other.end_line and other.col <= site.col
    inside = inside and site.end_col <= other.end_col and site.function == other.function
    return (
        inside
        and site.site != other.site
        and site.kind == "assign"
        and other.kind not in ("statement", "enter")
        and following.kind == moment.kind
    )


def _is_unfinished(record: Record, moment: Moment, heads: frozenset[int]) -> bool:
    """An expression before a block, or a value on its way into an object whose statement then raised."""
    site = None if moment.site is None else record.sites[moment.site]
    return site is not None and (site.end_line in heads or any("." in name or "[" in name for name in site.targets))


def _search(record: Record, moment: Moment, events: list[Event], at: int) -> int | None:
    """The first event from a place on that a moment can be, unless one that must have its own lies before."""
    for place in range(at, len(events)):
        if _fits(record, moment, events[place]):
            return place
        if _must(events[place]):
            break
    return None


def _fits(record: Record, moment: Moment, event: Event) -> bool:
    if moment.kind in _PASSES:
        return event.kind == _PASSES[moment.kind]
    if moment.site is None:
        return False
    site = record.sites[moment.site]
    if event.kind == "block" and site.kind != "statement":
        return False
    kinds = {"enter": {"enter"}, "return": {"return"}, "for": {"for"}}.get(site.kind, _PLAIN)
    return event.kind in kinds and event.line == site.end_line and event.function == site.function
