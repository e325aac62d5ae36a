"""A process that waits for one `backprobe run` with torch loaded: `python -m backprobe.cli.standby`.

It reads the arguments behind `backprobe`, a JSON list on one line of its standard input, runs that command and ends. If
its input ends before, so does it. A client that keeps one waiting has a short program's answer in less than a second.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from pathlib import Path

from backprobe.cli import main
from backprobe.cli.larger_stack import with_a_grown_stack


def run_when_told() -> int:
    """Get ready, wait for the arguments, run the command; its exit code."""
    with_a_grown_stack()
    began = time.time_ns()
    _get_ready()
    line = sys.stdin.buffer.readline()
    if not line:
        return 0
    arguments: list[str] = json.loads(line)
    _close_input()
    if _installed_at() > began:  # what is loaded may not be what is there
        os.execv(sys.executable, [sys.executable, "-m", "backprobe", *arguments])  # noqa: S606 - this very command
    return main(arguments)


def _get_ready() -> None:
    """Load torch, the rules and what programs need first, as far as there is time before the arguments come."""
    try:
        from backprobe.capture.program.warm_up import rest
    except ImportError:
        return  # there is no torch: `run` says so
    from backprobe.rules.framework.manual import every_rule
    from backprobe.show.formats import json as _report  # noqa: F401 - loaded, for the report

    for step in (every_rule, *rest()):
        if _input_is_there():
            return
        step()


def _input_is_there() -> bool:
    return bool(select.select([sys.stdin], [], [], 0)[0])


def _close_input() -> None:
    """Give the program an empty standard input, so that it reads nothing of the client's."""
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)


def _installed_at() -> int:
    """When a package was last put into or taken out of the folders that torch and Backprobe come from, in ns."""
    files = (getattr(sys.modules.get(name), "__file__", None) for name in ("torch", "backprobe"))
    return max(Path(file).parents[1].stat().st_mtime_ns for file in files if file is not None)


if __name__ == "__main__":
    sys.exit(run_when_told())
