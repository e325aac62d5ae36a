"""What a process beside the child did not catch, as one line of the log: the worker's stderr is theirs too.

`store.telemetry.logs` does the same for processes that may import it; here it is the standard library's
alone. No hook is set for it: a forked child would have it too, and a program is to find `sys.excepthook` as Python made
it.
"""

from __future__ import annotations

import datetime
import json
import os
import traceback
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def in_one_line(name: str) -> Generator[None]:
    """Write an exception that leaves the body as one JSON line to stderr, and end with exit code 1.

    Args:
        name: Of the process, for the line's `logger`.
    """
    try:
        yield
    except Exception as error:  # noqa: BLE001 - the last fence of a process
        line = {
            "at": datetime.datetime.now(datetime.UTC).isoformat().replace("+00:00", "Z"),
            "level": "critical",
            "logger": name,
            "event": "an exception was not caught",
            "error": type(error).__name__,
            "text": str(error)[:1000],
            "trace": [
                f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)
            ],
        }
        os.write(2, json.dumps(line).encode() + b"\n")
        raise SystemExit(1) from None
