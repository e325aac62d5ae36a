"""Runs programs under capture, each in a fork of one warm process: `python -m backprobe.capture.program.fork_server`.

It reads a line of JSON for each program and answers with one, `{"status": wait status}`; the record is in the file that
was named. Whoever starts it stays without torch, and pays for its import once. The programs are trusted as any script
is that is run by hand: there is no sandbox here.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Serve programs until standard input ends."""
    from backprobe.capture import warm

    warm()
    _say("warm")
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if child == 0:
            _run(asked)
        _pid, status = os.waitpid(child, 0)
        _say(json.dumps({"status": status}))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _run(asked: dict[str, Any]) -> None:
    from backprobe.capture import Options, run_files
    from backprobe.record.encoding.codec import MAGIC

    signal.alarm(asked["seconds"])
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    code = 1
    with contextlib.suppress(BaseException), Path(asked["record"]).open("wb") as record:
        record.write(MAGIC)
        options = Options(tier=asked["tier"], seed=asked["seed"])

        def sink(frames: bytes) -> None:
            record.write(frames)

        run_files(asked["files"], asked["entry"], asked["argv"], options, sink)
        code = 0
    os._exit(code)


if __name__ == "__main__":
    main()
