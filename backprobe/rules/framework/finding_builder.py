"""Findings put together from a rule and the record's numbers, so that a rule file holds its story and no plumbing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from backprobe.rules.analysis.source.naming import without_marks
from backprobe.rules.analysis.training.steps import step_of
from backprobe.rules.framework.finding import (
    Evidence,
    Finding,
    Fix,
    Location,
    Occurrences,
    Region,
    Related,
    Subject,
    rule_name,
)
from backprobe.rules.framework.locations import location

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.rule import Level, Rule


def told(  # noqa: PLR0913 - one keyword for each part of a finding
    record: Record,
    rule: Rule,
    site: int,
    message: Sequence[str],
    *,
    binding: str,
    moments: Sequence[int],
    region: Region | None = None,
    related: Iterable[tuple[str, int | None]] = (),
    evidence: Mapping[str, Evidence] | None = None,
    fixes: Iterable[Fix] = (),
    tensors: Iterable[int] = (),
    calls: Iterable[int] = (),
    optimizers: Iterable[int] = (),
    level: Level | None = None,
) -> Finding:
    """A finding of a rule.

    Args:
        record: What was judged. rule: whose finding it is.
        site: Where the mistake is; region: the part of its file to mark, the whole site by default.
        message: What was seen; why it matters; what to change: at most three lines.
        binding: The user's name for what it is about.
        moments: Of each occurrence, the moment; at least one, ascending.
        related: The rest of the story in order: a text and a site; those without a site are left out, and one place is
            shown once.
        tensors, calls, optimizers: What it is about, in the record's numbers (`folding.py`).
        level: How bad; the rule's own by default.
    """
    facts = [("tensor", one) for one in tensors]
    facts += [("call", one) for one in calls]
    facts += [("optimizer", one) for one in optimizers]
    place = location(record, site, region)
    return Finding(
        rule=rule_name(rule),
        level=level or rule.severity,
        confidence=rule.confidence,
        message="\n".join(without_marks(line) for line in message[:3]),
        location=place,
        related=joined(place, [(text, location(record, at)) for text, at in related if at is not None]),
        evidence={"binding": binding, **(evidence or {})},
        fixes=tuple(fixes),
        occurrences=Occurrences(
            count=len(moments), first_step=step_of(record, moments[0]), last_step=step_of(record, moments[-1])
        ),
        subject=Subject(facts=tuple(facts), moment=moments[0]),
    )


def joined(place: Location, story: Iterable[tuple[str, Location]]) -> tuple[Related, ...]:
    """The rest of a story with each place once: two texts of one place are one note, and the finding's own has none."""
    texts: dict[tuple[str, Region], list[str]] = {}
    places: dict[tuple[str, Region], Location] = {}
    for text, other in story:
        key = (other.path, other.region)
        if key != (place.path, place.region):
            places.setdefault(key, other)
            texts.setdefault(key, []).append(text)
    return tuple(Related(message="; ".join(dict.fromkeys(texts[key])), location=other) for key, other in places.items())
