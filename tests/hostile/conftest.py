"""The tables at the end of `make hostile`: what each level contained, and what came of each program."""

import collections
import os
import re
from collections.abc import Callable

import pytest

from tests.hostile.program_texts import OWN, read_programs

LEVELS = ("process", "namespace", "several", "gvisor", "control")
TITLES = {
    "several": "namespace, 4 processes",
    "control": "control: limits only",
}
WORDS = ("contained", "breached", "allowed", "silent")
Results = dict[tuple[str, str], str]
"""Program and level -> what came of it."""

CAME = "what came of a hostile program"

SILENT = re.compile(r"^# CONTROL: silent: (.+)$", re.MULTILINE)


@pytest.fixture(autouse=True)
def _full(sandbox: None) -> None:
    """All of these start warm processes of their own."""


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Callable[[str, str, str], None]:
    """Note what came of a program: `tell(program, level, what)`; what stands before the colon is counted."""

    def one(program: str, level: str, what: str) -> None:
        request.node.user_properties.append((CAME, [program, level, what]))

    return one


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A line for each level, the explained silences, and a line for each program; only what ran is in it."""
    reports = [one for kind in terminalreporter.stats.values() for one in kind if hasattr(one, "user_properties")]
    told = [value for report in reports for name, value in report.user_properties if name == CAME]
    results: Results = {(program, level): what for program, level, what in told}
    if not results or not os.environ.get("BACKPROBE_HOSTILE_ALL"):
        return
    for line in (*counted(results), "", *silences(results), *exceptions(results), "", *each(results)):
        terminalreporter.write_line(line)


def counted(results: Results) -> list[str]:
    """A line for each level: how many programs were run there, and how many of them contained or seen."""
    lines = [f"{'level':26}" + "".join(f"{word:>11}" for word in (*WORDS, "of"))]
    for level in LEVELS:
        told = collections.Counter(what.partition(":")[0] for (_, where), what in results.items() if where == level)
        counts = (*(told[word] for word in WORDS), told.total())
        shown = "".join(f"{count:>11}" for count in counts) if told else f"{'not run':>11}"
        lines.append(f"{TITLES.get(level, level):26}{shown}")
    return lines


def silences(results: Results) -> list[str]:
    """Why programs of our own breach nothing where only limits hold, and how many for each reason."""
    reasons: dict[str, list[str]] = {}
    for name, text in read_programs(OWN):
        found = SILENT.search(text)
        if found is not None and any(program == name for program, _ in results):
            reasons.setdefault(found[1], []).append(name)
    told = [f"{len(names):4}  {why}" for why, names in sorted(reasons.items(), key=lambda one: -len(one[1]))]
    return ["silent at the control, and why:", *told] if told else []


def exceptions(results: Results) -> list[str]:
    """What several processes are allowed that one is not."""
    told = sorted(
        f"      {what.partition(': ')[2]}: {name}" for (name, _), what in results.items() if what.startswith("allowed")
    )
    return ["allowed to several processes, in namespaces of their own:", *told] if told else []


def each(results: Results) -> list[str]:
    """A line for each program."""
    lines = [f"{'program':32}" + "".join(f"{level:36}" for level in LEVELS)]
    for program in sorted({name for name, _ in results}):
        told = [results.get((program, level), "-")[:34] for level in LEVELS]
        lines.append(f"{program:32}" + "".join(f"{one:36}" for one in told).rstrip())
    return lines
