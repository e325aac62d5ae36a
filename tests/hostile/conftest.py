"""The table at the end of `make hostile`: each program at each level, and what its detectors saw without one."""

import os
import sys

import pytest

LEVELS = ("process", "namespace", "control")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line a program; only what ran is in it."""
    results = getattr(sys.modules.get("test_hostile"), "RESULTS", {})
    if not results or not os.environ.get("BACKPROBE_HOSTILE_ALL"):
        return
    terminalreporter.write_line(f"{'program':32}" + "".join(f"{level:36}" for level in LEVELS))
    for program in sorted({name for name, _level in results}):
        told = [results.get((program, level), "-")[:34] for level in LEVELS]
        terminalreporter.write_line(f"{program:32}" + "".join(f"{one:36}" for one in told))
