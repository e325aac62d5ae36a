"""Programs of manuals, run under capture in a process of their own: this one stays without torch. For `testing.py`."""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, Self

from backprobe.record import Record, loads

NAME: Final = "train.py"
"""What every program is called when it runs: a name may tell the answer."""

SECONDS: Final = 60
"""A program may run so long."""


class Programs:
    """`captured(program)`: its record; each program is run once. `with` ends the process that runs them."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._kept: dict[str, bytes] = {}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "backprobe.capture.forks.fork_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("pipes were asked for")
        self._asks, self._answers = self._process.stdin, self._process.stdout
        if self._answers.readline() != "warm\n":
            raise RuntimeError("the process that runs programs did not start; is torch installed?")

    def captured(
        self,
        source: str,
        *,
        tier: str = "full",
        seed: int | None = 0,
        files: Mapping[str, str] | None = None,
        check: bool = False,
        alone: bool = False,
    ) -> Record:
        """The record of a program, with files beside it; with `check` its gradients are checked.

        Plain programs run one after the other in one process; with `alone` it has one for itself.

        Raises:
            RuntimeError: it did not end within `SECONDS`.
        """
        target = Path(self._folder.name) / "one.bprec"
        asked: dict[str, Any] = {
            "files": {NAME: source, **(files or {})},
            "entry": NAME,
            "argv": [],
            "tier": tier,
            "seed": seed,
            "check": check,
            "alone": alone,
        }
        line = json.dumps({**asked, "seconds": SECONDS, "record": str(target)})
        if line not in self._kept:
            self._asks.write(f"{line}\n")
            self._asks.flush()
            status = json.loads(self._answers.readline())["status"]
            if status != 0:
                raise RuntimeError(f"the run did not end: wait status {status}")
            self._kept[line] = target.read_bytes()
        return loads(self._kept[line])

    def close(self) -> None:
        """End the process."""
        self._asks.close()
        self._process.wait(30)
        self._answers.close()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@cache
def programs() -> Programs:
    """One for this process; it ends with it."""
    opened = Programs()
    atexit.register(opened.close)
    return opened
