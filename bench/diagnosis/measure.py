"""A tool's answers on one set, counted by family.

case: faulty, its mistake is on line 12         right line   a line of the mistake is named, and as one of its kinds
                                                fair line    or a line that may be named: where it raises
its repaired twin, and correct programs         alarm        anything at warning or above
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from bench.diagnosis.intervals import upper_bound
from bench.diagnosis.tool_report import LEVELS, Tool, ToolReport
from tests.corpus.cases import Case, Corpus


@dataclass
class Family:
    """Counts of one family of faults."""

    cases: int = 0
    strict: int = 0
    lenient: int = 0
    alarms: int = 0


@dataclass
class Measured:
    """What one tool did on one set.

    Attributes:
        by_family: The twins count with the family of their fault; correct programs, whose text alone is given, apart.
        correct: Programs without a fault that were shown. alarmed: of those, with anything said at warning or above.
    """

    tool: str
    by_family: dict[str, Family] = field(default_factory=lambda: defaultdict(Family))
    correct: int = 0
    alarmed: list[str] = field(default_factory=list)


def measured(tool: Tool, corpus: Corpus, progress: Callable[[str], None]) -> Measured:
    """Show every program of a set to a tool."""
    found = Measured(tool.name)
    for at, case in enumerate(corpus.cases, 1):
        family = found.by_family[case.category]
        strict, lenient = graded(case, tool.report(case.bad))
        family.cases += 1
        family.strict += strict
        family.lenient += lenient
        family.alarms += _alarm(found, tool, f"{case.id}, repaired", case.good)
        progress(f"{tool.name}, {corpus.name}: {at} of {len(corpus.cases)} cases")
    for program in corpus.correct:
        alarm = _alarm(found, tool, program.name, program.text)
        found.by_family["correct programs"].alarms += alarm
    return found


def graded(case: Case, told: Sequence[ToolReport]) -> tuple[bool, bool]:
    """Return whether a report is on a right line, and on a fair one: loud enough, and of a kind that fits."""
    wanted = {None, case.kind, *case.kinds}
    loud = LEVELS[: LEVELS.index(case.severity) + 1]
    lines = {report.line for report in told if report.kind in wanted and report.level in loud}
    return bool(lines & {*case.lines}), bool(lines & {*case.lines, *case.also})


def _alarm(found: Measured, tool: Tool, name: str, text: str) -> bool:
    found.correct += 1
    is_alarm = any(report.level != "note" for report in tool.report(text))
    if is_alarm:
        found.alarmed.append(name)
    return is_alarm


def table(corpus: Corpus, results: Sequence[Measured]) -> Iterator[str]:
    """One set as Markdown: right and fair lines of each tool by family, then false alarms."""
    yield f"### {corpus.name}: {len(corpus.cases)} faulty programs, {results[0].correct} correct ones\n"
    yield "| family | cases | " + " | ".join(f"{result.tool}: right, fair" for result in results) + " |"
    yield "| --- | ---: |" + " ---: |" * len(results)
    families = sorted(name for name, family in results[0].by_family.items() if family.cases)
    for name in families:
        yield _row(name, [result.by_family[name] for result in results])
    yield _row("**all**", [_sum([result.by_family[name] for name in families]) for result in results])
    yield ""
    for result in results:
        bound = upper_bound(len(result.alarmed), result.correct)
        named = (
            f": {', '.join(result.alarmed[:8])}{' ...' if len(result.alarmed) > 8 else ''}" if result.alarmed else ""
        )
        yield (
            f"* {result.tool}: {len(result.alarmed)} of {result.correct} correct programs alarmed, "
            f"below {bound:.1%} at 95 % confidence{named}."
        )


def _row(name: str, families: Sequence[Family]) -> str:
    counts = " | ".join(f"{family.strict}, {family.lenient}" for family in families)
    return f"| {name} | {families[0].cases} | {counts} |"


def _sum(families: Sequence[Family]) -> Family:
    total = Family()
    for family in families:
        for key, value in vars(family).items():
            setattr(total, key, getattr(total, key) + value)
    return total
