"""The process that compiles strangers' programs for this one (`service.process.compile_loop`).

1. No text of a stranger is compiled in this process. CPython's compiler takes memory with the square of a text in more
   ways than its parser: captures of one pattern, private names in a class with a long name, names of nested functions.
2. The other process has a limit of memory and of CPU time. A text that reaches one is not judged: the run itself says
   what Python makes of it, in its sandbox.
3. One process serves all threads, one text at a time. It starts with the first text and again after it has ended.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import select
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from service.process.compile_loop import LENGTHS

WALL_SECONDS: Final = 20.0
"""For one text, on a loaded machine; its CPU time is bounded by `compile_loop.CPU_SECONDS`."""

_SCRIPT: Final = Path(__file__).with_name("compile_loop.py")

_log: Final = logging.getLogger("backprobe.service")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why a text is no program.

    Attributes:
        line: From 1; None: CPython names none.
    """

    message: str
    line: int | None


class SyntaxChecker:
    """Compiles texts in a process of its own."""

    def __init__(self) -> None:
        self._checking = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._of_pid = 0
        """Process that started it: a fork of that one must not write into its pipe."""

    def find_fault(self, path: str, text: str) -> Fault | None:
        """Compile a text; None: it has no fault, or reached a limit before one was found."""
        with self._checking:
            try:
                line = self._ask(path.encode("utf-8", "surrogatepass"), text.encode("utf-8", "surrogatepass"))
            except OSError as error:  # it ended while it was written to, or could not be started
                _log.warning("the process that compiles programs does not answer: %s", type(error).__name__)
                line = b""
            found: dict[str, Any] = json.loads(line) if line else {"fault": None, "last": True}
            if found["last"]:
                self._end()
        return None if found["fault"] is None else Fault(message=found["fault"], line=found["line"])

    def close(self) -> None:
        """End the process."""
        with self._checking:
            self._end()

    def _ask(self, path: bytes, text: bytes) -> bytes:
        """Send one text and read the answer; empty if there is none."""
        process = self._started()
        if process.stdin is None or process.stdout is None:  # never: both are pipes
            return b""
        process.stdin.write(LENGTHS.pack(len(path), len(text)) + path + text)
        process.stdin.flush()
        waiting = select.poll()
        waiting.register(process.stdout, select.POLLIN)
        return process.stdout.readline() if waiting.poll(WALL_SECONDS * 1000) else b""

    def _started(self) -> subprocess.Popen[bytes]:
        known = self._process
        if known is not None and self._of_pid == os.getpid() and known.poll() is None:
            return known
        self._end()
        command = [sys.executable, "-I", "-S", str(_SCRIPT)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._of_pid = os.getpid()
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None or self._of_pid != os.getpid():
            return
        process.kill()
        for end in (process.stdin, process.stdout):
            if end is not None:
                with contextlib.suppress(BrokenPipeError):  # of what was still to be written
                    end.close()
        process.wait()


CHECKER: Final = SyntaxChecker()
"""Of this process."""

atexit.register(CHECKER.close)
