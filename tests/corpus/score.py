"""How well a report of a faulty program names its mistake, and what it says of correct ones."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from backprobe.rules import Finding
from tests.corpus.cases import Case

_BAD = ("error", "warning", "note")


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One faulty program.

    Attributes:
        kind: A finding of an expected kind is there; lenient: it names a line that may be named; strict: one of the
            mistake; named: and uses one of the expected names.
        others: Findings at warning or above of other kinds, as (code, line).
    """

    case: Case
    kind: bool
    lenient: bool
    strict: bool
    named: bool
    others: tuple[tuple[str, int], ...]


def loud(findings: Iterable[Finding]) -> list[Finding]:
    """The findings at warning or above that nothing hides."""
    return [one for one in findings if one.level != "note" and one.suppressed is None]


def scored(case: Case, findings: Sequence[Finding], kinds: Mapping[str, str]) -> Score:
    """Score the findings of a case's faulty program.

    Args:
        kinds: Kind of mistake by rule name.
    """
    wanted = {case.kind, *case.kinds}
    hits = [
        one
        for one in findings
        if kinds.get(one.rule.name) in wanted and _BAD.index(one.level) <= _BAD.index(case.severity)
    ]
    lines = [one.location.region.start_line for one in hits]
    strict = [one for one, line in zip(hits, lines, strict=True) if line in case.lines]
    return Score(
        case=case,
        kind=bool(hits),
        lenient=any(line in case.lines or line in case.also for line in lines),
        strict=bool(strict),
        named=any(name in one.message or name in str(one.evidence) for one in strict for name in case.names),
        others=tuple(
            (one.rule.code, one.location.region.start_line)
            for one in loud(findings)
            if kinds.get(one.rule.name) not in wanted
        ),
    )


def torch_found(case: Case, said: Iterable[tuple[int, str]]) -> tuple[bool, bool]:
    """What torch's own exceptions and warnings name: (strict, lenient), whatever they say there."""
    lines = {line for line, _text in said}
    return bool(lines & set(case.lines)), bool(lines & {*case.lines, *case.also})
