"""One cause, one finding: what follows from another finding is folded under it, and of two rivals one stays.

1. A finding of rule A takes in a finding of rule B that A `explains`, if A's cause came first and the two speak of one
   tensor, parameter or backward call: B is then a consequence, its place is related, and A has the worse level.
2. Of two findings over one fact the one stays whose rule `refines` the other's; the other is a consequence of it.
3. Two causes never become one: findings without a common subject stay apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from backprobe.rules.framework.finding import Consequence, Finding, Related
from backprobe.rules.framework.options import LEVELS
from backprobe.rules.framework.subject import reach_of

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.rule import Rule

MOST_RELATED: Final = 8
"""Related places that a finding carries; a story longer than that is not read."""


def folded(record: Record, findings: Sequence[Finding], rules: Iterable[Rule]) -> list[Finding]:
    """The findings that stand for themselves, each with those that follow from it."""
    declared = {rule.name: rule for rule in rules}
    under: dict[int, int] = {}
    for follower, finding in enumerate(findings):
        others = (at for at in range(len(findings)) if at != follower)
        causes = [at for at in others if _takes(record, declared, findings[at], finding)]
        if causes:
            under[follower] = min(causes, key=lambda at: _order(declared, findings[at], finding))
    kept: list[Finding] = []
    for at, finding in enumerate(findings):
        if at not in under:
            followers = [findings[one] for one in under if _root(under, one) == at]
            kept.append(_with(finding, followers) if followers else finding)
    return kept


def _takes(record: Record, declared: Mapping[str, Rule], cause: Finding, effect: Finding) -> bool:
    rule, other = declared.get(cause.rule.name), declared.get(effect.rule.name)
    if rule is None or other is None:
        return False
    if other.name in rule.refines:
        return not reach_of(record, cause).isdisjoint(effect.subject.facts)
    if other.name not in rule.explains or cause.subject.moment > effect.subject.moment:
        return False
    return not reach_of(record, cause).isdisjoint(effect.subject.facts)


def _order(declared: Mapping[str, Rule], cause: Finding, effect: Finding) -> tuple[bool, int, str]:
    """The refining rule first, then the earliest cause, then the lower code."""
    refines = effect.rule.name in declared[cause.rule.name].refines
    return (not refines, cause.subject.moment, cause.rule.code)


def _root(under: Mapping[int, int], at: int) -> int:
    """What a finding is folded under in the end; declarations have no cycle, but a broken plug-in's might."""
    seen = {at}
    while at in under and under[at] not in seen:
        at = under[at]
        seen.add(at)
    return at


def _with(cause: Finding, followers: Sequence[Finding]) -> Finding:
    consequences = tuple(Consequence(rule=one.rule.name, location=one.location) for one in followers)
    places = {(cause.location.path, cause.location.region)}
    places |= {(one.location.path, one.location.region) for one in cause.related}
    related = list(cause.related)
    for one in followers:
        place = (one.location.path, one.location.region)
        if place not in places and len(related) < MOST_RELATED:
            places.add(place)
            related.append(Related(message=f"{one.rule.name} follows from it", location=one.location))
    level = min((cause.level, *(one.level for one in followers)), key=LEVELS.index)
    return msgspec.structs.replace(
        cause, level=level, consequences=(*cause.consequences, *consequences), related=tuple(related)
    )
