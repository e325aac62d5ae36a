"""The process that compiles strangers' programs for this one (`service.process.compile_loop`).

1. No text of a stranger is compiled in this process. CPython's compiler takes memory with the square of a text in more
   ways than its parser: captures of one pattern, private names in a class with a long name, names of nested functions.
2. The other process has a limit of memory, and of CPU time for all files of a program. A text that reaches one is not
   judged, nor are the files behind it: the run itself says what Python makes of them, in its sandbox.
3. There are two such processes. A tenant has one at a time: what takes long holds up nobody else. One starts with its
   first text and again after it has ended.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import queue
import select
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from service.process.compile_loop import CPU_SECONDS, HEAD

WALL_SECONDS: Final = 20.0
"""For one text, on a loaded machine; its CPU time is bounded by `compile_loop.CPU_SECONDS`."""

PROCESSES: Final = 2
"""Each has at most 512 MiB, and as a rule 12."""

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
    """Compile texts in a separate process, one at a time.

    Attributes:
        seconds_left: Of CPU time for the files of this program; without any, nothing is compiled.
    """

    def __init__(self) -> None:
        self.seconds_left = CPU_SECONDS
        self._process: subprocess.Popen[bytes] | None = None
        self._of_pid = 0
        """Process that started it: a fork of that one must not write into its pipe."""

    def find_fault(self, path: str, text: str) -> Fault | None:
        """Compile a text; None: it has no fault, or a limit was reached before one was found."""
        if self.seconds_left <= 0:
            return None
        try:
            line = self._ask(path.encode("utf-8", "surrogatepass"), text.encode("utf-8", "surrogatepass"))
        except OSError as error:  # it ended while it was written to, or could not be started
            _log.warning("the process that compiles programs does not answer: %s", type(error).__name__)
            line = b""
        found: dict[str, Any] = json.loads(line) if line else {"fault": None, "seconds": CPU_SECONDS, "last": True}
        self.seconds_left -= found["seconds"]
        if found["last"]:
            self.end()
        return None if found["fault"] is None else Fault(message=found["fault"], line=found["line"])

    def _ask(self, path: bytes, text: bytes) -> bytes:
        """Send one text and read the answer; empty if there is none."""
        process = self._start_process()
        if process.stdin is None or process.stdout is None:  # never: both are pipes
            return b""
        process.stdin.write(HEAD.pack(len(path), len(text), self.seconds_left) + path + text)
        process.stdin.flush()
        waiting = select.poll()
        waiting.register(process.stdout, select.POLLIN)
        return process.stdout.readline() if waiting.poll(WALL_SECONDS * 1000) else b""

    def _start_process(self) -> subprocess.Popen[bytes]:
        known = self._process
        if known is not None and self._of_pid == os.getpid() and known.poll() is None:
            return known
        self.end()
        command = [sys.executable, "-I", "-S", str(_SCRIPT)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._of_pid = os.getpid()
        return self._process

    def end(self) -> None:
        """End the process; the next text starts another one."""
        process, self._process = self._process, None
        if process is None or self._of_pid != os.getpid():
            return
        process.kill()
        for end in (process.stdin, process.stdout):
            if end is not None:
                with contextlib.suppress(BrokenPipeError):  # of what was still to be written
                    end.close()
        process.wait()


class SyntaxCheckers:
    """The processes of this one, of which a tenant has one at a time.

    So whoever sends programs that take long to compile keeps one of them busy, and another tenant has the other.
    """

    def __init__(self, size: int = PROCESSES) -> None:
        self._all = [SyntaxChecker() for _ in range(size)]
        self._free: queue.LifoQueue[SyntaxChecker] = queue.LifoQueue()
        for checker in self._all:
            self._free.put(checker)
        self._turns: defaultdict[int, threading.Lock] = defaultdict(threading.Lock)

    @contextlib.contextmanager
    def lend(self, tenant_id: int) -> Iterator[SyntaxChecker]:
        """Lend a process for the files of one program."""
        with self._turns[tenant_id]:
            checker = self._free.get()
            checker.seconds_left = CPU_SECONDS
            try:
                yield checker
            finally:
                self._free.put(checker)

    def close(self) -> None:
        """End the processes."""
        for checker in self._all:
            checker.end()


CHECKERS: Final = SyntaxCheckers()
"""Of this process."""

atexit.register(CHECKERS.close)
