"""What a run of the tests prints at its end: where its time went, what failed at first, and what was not run and why."""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.support.lanes import lane
from tests.support.resources import RESOURCES

SLOWEST = 15
WHY_LINES = 40
"""Of what a test said that was run again: its end has the failure."""

BY_BEGINNING = {
    "level gvisor": RESOURCES["runsc"].command,
    "level ": "backprobe doctor    # says what this machine lacks for the level, and what would give it",
    "no cgroup": "backprobe doctor    # says which part of /sys/fs/cgroup must be writable",
    "no git checkout": "git clone, in place of a copy without .git",
    "only root": "sudo make test",
    "transformers": "make venv-dev && .venv/bin/pip install -c constraints.txt 'backprobe[suite]'",
}
"""Beginning of a reason that names no resource -> what would bring it."""

LEAST_SECONDS = 60.0
"""A run that took less prints no table of its time."""


def processor_seconds() -> float:
    """Of this process and of every ended process that it or one of its children waited for."""
    return sum(os.times()[:4])


@dataclass
class Spent:
    """What the tests of one folder or lane took."""

    cases: set[str] = field(default_factory=set)
    wall_seconds: float = 0.0
    processor_seconds: float = 0.0


class Times:
    """Adds to each report the processor time of its phase."""

    def __init__(self) -> None:
        self._before = processor_seconds()
        self._began = time.monotonic()
        self.test_processes = 0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Iterator[None]:
        report: Any = yield
        now = processor_seconds()
        report.processor_seconds, self._before = now - self._before, now
        return report

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self) -> None:
        self.test_processes += 1

    def wall_seconds(self) -> float:
        """Since the tests were configured."""
        return time.monotonic() - self._began


TIMES = pytest.StashKey[Times]()


def pytest_configure(config: pytest.Config) -> None:
    """Measure every test."""
    config.stash[TIMES] = Times()
    config.pluginmanager.register(config.stash[TIMES], "times")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The tables."""
    times = config.stash[TIMES]
    reports = [
        report for kind in terminalreporter.stats.values() for report in kind if hasattr(report, "processor_seconds")
    ]
    if times.wall_seconds() > LEAST_SECONDS:
        for line in (*where_time_went(reports), *slowest(reports), total(times)):
            terminalreporter.write_line(line)
    for line in run_again(terminalreporter.stats.get("rerun", [])):
        terminalreporter.write_line(line)
    for line in not_run(terminalreporter.stats.get("skipped", [])):
        terminalreporter.write_line(line, yellow=True)


def folder_of(nodeid: str) -> str:
    """tests/backprobe/rules/test_x.py::test_y -> backprobe/rules"""
    return "/".join(nodeid.partition("::")[0].split("/")[1:-1]) or "tests"


def spent(reports: list[Any], key: Any) -> list[tuple[str, Spent]]:
    """What each folder, lane or case took, the longest first."""
    found: dict[str, Spent] = defaultdict(Spent)
    for report in reports:
        cost = found[key(report.nodeid)]
        cost.cases.add(report.nodeid)
        cost.wall_seconds += report.duration
        cost.processor_seconds += report.processor_seconds
    return sorted(found.items(), key=lambda row: -row[1].wall_seconds)


def where_time_went(reports: list[Any]) -> Iterator[str]:
    """A line for each folder, then one for each of the longest lanes."""
    yield ""
    for title, key, most in (("folder", folder_of, 100), ("lane", lane, SLOWEST)):
        yield f"{title:64}{'cases':>8}{'wall s':>9}{'processor s':>13}"
        for name, cost in spent(reports, key)[:most]:
            yield f"{name:64}{len(cost.cases):8}{cost.wall_seconds:9.1f}{cost.processor_seconds:13.1f}"
        yield ""


def slowest(reports: list[Any]) -> Iterator[str]:
    """The cases that took longest."""
    yield f"{'the slowest cases':72}{'wall s':>9}{'processor s':>13}"
    for name, cost in spent(reports, str)[:SLOWEST]:
        yield f"{name.removeprefix('tests/')[:71]:72}{cost.wall_seconds:9.1f}{cost.processor_seconds:13.1f}"
    yield ""


def total(times: Times) -> str:
    """One line for the whole run; test processes have ended by now, so that what they used is known."""
    processes = f"{times.test_processes} test processes" if times.test_processes else "one test process"
    load = os.getloadavg()[0]
    return f"{times.wall_seconds() / 60:.1f} min of wall time, {processor_seconds() / 60:.1f} min of processor time, {processes}, load {load:.1f}"


def run_again(reports: list[Any]) -> Iterator[str]:
    """Why each test failed that was then run again: pytest itself says no more than its name."""
    for report in reports:
        yield f"run again: {report.nodeid}, after {report.duration:.0f} s"
        yield from (f"    {line}" for line in str(report.longrepr).splitlines()[-WHY_LINES:])


def not_run(skipped: list[Any]) -> Iterator[str]:
    """What was skipped, counted by its reason, with the command that would bring what it lacked."""
    reasons = Counter(_reason(report) for report in skipped)
    if not reasons:
        return
    yield f"{'not run':>8}  why, and what would bring it"
    for reason, count in reasons.most_common():
        yield f"{count:8}  {reason}"
        if command := command_for(reason):
            yield f"{'':10}{command}"


def command_for(reason: str) -> str | None:
    """What would bring what a test lacked; None: nothing does, it is of another machine or level."""
    name = reason.partition(" ")[0]
    if name in RESOURCES:
        return RESOURCES[name].command
    return next((command for beginning, command in BY_BEGINNING.items() if reason.startswith(beginning)), None)


def _reason(report: Any) -> str:
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")
