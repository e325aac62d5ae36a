"""Forks of this process in which programs run: a plain program shares one with others, any other has one for itself.

Most of what a small program costs in a fork is the fork: 3,500 pages are copied when they are first written to, which
takes 40 ms of processor time where the program takes 12. So a fork that a program left as it was runs the next one.

1. Programs share a fork only if their text is plain (`plain_programs`).
2. A fork that its program left otherwise than it had found it (`process_state`), that it exited, or that a warning was
   printed in, ends with that program: torch gives many a warning once in a process.
3. A program that ended its shared fork, by a signal or its own exit, is run again in a fresh fork, and that counts.
4. A shared record differs from a lone one in times and in the numbers that autograd counts from the process's start.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Final, Self

from backprobe.capture.forks.plain_programs import is_plain
from backprobe.capture.forks.process_state import State

if TYPE_CHECKING:
    from backprobe.record import End

MOST_SHARED: Final = 24
"""Programs of one fork: what the engine and torch keep for ever stays small beside what the fork costs."""

AS_BEFORE: Final = "as before\n"
OTHERWISE: Final = "otherwise\n"

Run = Callable[[str], "End | None"]


class _Fork:
    """A fork that runs one program after the other: the ends of two pipes, and how many ran."""

    def __init__(self, pid: int, asks: IO[str], answers: IO[str]) -> None:
        self.pid, self.asks, self.answers, self.ran = pid, asks, answers, 0

    def answer(self, line: str) -> str:
        """Run a program and return what the fork says: `AS_BEFORE`, `OTHERWISE`, or nothing if it has ended."""
        self.ran += 1
        try:
            self.asks.write(line)
            self.asks.flush()
        except BrokenPipeError:
            return ""
        return self.answers.readline()

    def close(self) -> int:
        """Wait for its end, which comes at the latest now: its wait status."""
        with contextlib.suppress(BrokenPipeError):
            self.asks.close()
        self.answers.close()
        return os.waitpid(self.pid, 0)[1]


class Forks:
    """`with Forks(run) as forks`: what of this process exists by then is no longer looked through for cycles.

    Args:
        run: Runs in a fork what a line asks for: how it ended, None if it could not be run.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._shared: _Fork | None = None
        gc.collect()
        gc.freeze()

    def status(self, line: str, text: str | None) -> int:
        """Return the wait status of the process that did what the line asks for.

        Args:
            text: The program, if it may share a fork; None: it has one for itself.
        """
        if text is None or not is_plain(text):
            return self._alone(line)
        shared = self._shared = self._shared or self._start_fork()
        is_first = shared.ran == 0
        answer = shared.answer(line)
        if answer == AS_BEFORE and shared.ran < MOST_SHARED:
            return 0
        status = self._end_shared()
        return status if is_first or (answer and status == 0) else self._alone(line)

    def _alone(self, line: str) -> int:
        pid = os.fork()
        if pid == 0:
            if self._shared is not None:
                self._shared.asks.close()
                self._shared.answers.close()
            code = 1
            try:
                _be_quiet()
                code = 0 if self._run(line) is not None else 1
            finally:
                os._exit(code)
        return os.waitpid(pid, 0)[1]

    def _start_fork(self) -> _Fork:
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(ours_out)
            os.close(ours_in)
            with os.fdopen(theirs_in) as asks, os.fdopen(theirs_out, "w") as answers:
                self._serve(asks, answers)
        os.close(theirs_in)
        os.close(theirs_out)
        return _Fork(pid, os.fdopen(ours_out, "w"), os.fdopen(ours_in))

    def _serve(self, asks: IO[str], answers: IO[str]) -> None:
        """In the fork: run programs until one leaves something behind, or until nobody asks."""
        code = 1
        try:
            printed = _be_quiet()
            before = State()
            for line in asks:
                end = self._run(line)
                code = 0 if end is not None else 1
                stays = end is not None and end.ending != "exited" and not _warned(printed) and before.holds()
                signal.alarm(0)
                answers.write(AS_BEFORE if stays else OTHERWISE)
                answers.flush()
                if not stays:
                    break
        finally:
            os._exit(code)

    def _end_shared(self) -> int:
        shared, self._shared = self._shared, None
        return 0 if shared is None else shared.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_shared()


def _warned(printed: int) -> bool:
    """Return whether a warning is among what was printed as errors, and discard that text."""
    text = os.pread(printed, 1 << 20, 0)
    os.ftruncate(printed, 0)
    os.lseek(printed, 0, os.SEEK_SET)
    return b"Warning" in text or len(text) == 1 << 20


def _be_quiet() -> int:
    """Nothing is read or shown; the file that takes what would be printed as an error."""
    quiet = os.open(os.devnull, os.O_RDWR)
    errors = os.memfd_create("errors")
    os.dup2(quiet, 0)
    os.dup2(quiet, 1)
    os.dup2(errors, 2)
    return errors
