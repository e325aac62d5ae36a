"""Runs programs under capture in forks of one warm process: `python -m backprobe.capture.forks.fork_server`.

It reads a line of JSON for each program and answers with one, `{"status": wait status}`; the record is in the file that
was named. Whoever starts it stays without torch, and pays for its import once. The programs are trusted as any script
is that is run by hand: there is no sandbox here.
"""

from __future__ import annotations

import contextlib
import json
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backprobe.capture.forks.shared_fork import Forks

if TYPE_CHECKING:
    from backprobe.record import End


def main() -> None:
    """Serve programs until standard input ends."""
    from backprobe.capture import warm

    warm()
    with Forks(run) as forks:
        _say("warm")
        for line in sys.stdin:
            asked = json.loads(line)
            shares = not (asked["files"].keys() - {asked["entry"]} or asked["tier"] == "deep" or asked.get("alone"))
            _say(json.dumps({"status": forks.status(line, asked["files"][asked["entry"]] if shares else None)}))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def run(line: str) -> End | None:
    """Run a program in this process, which is a fork for such: how it ended; None: it could not be run."""
    from backprobe.capture import Options, run_files
    from backprobe.record.encoding.codec import MAGIC

    asked: dict[str, Any] = json.loads(line)
    signal.alarm(asked["seconds"])
    with contextlib.suppress(BaseException), Path(asked["record"]).open("wb") as record:
        record.write(MAGIC)
        options = Options(tier=asked["tier"], seed=asked["seed"], check="full" if asked.get("check") else "off")

        def sink(frames: bytes) -> None:
            record.write(frames)

        return run_files(asked["files"], asked["entry"], asked["argv"], options, sink)
    return None


if __name__ == "__main__":
    main()
