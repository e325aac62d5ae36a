"""The fence around every body of ours that runs inside the user's program.

1. An error of ours never reaches the user: it is counted, the first one's text is kept.
2. What the user's own code raised inside us (a signal handler, Ctrl-C) does reach the user.
3. A body that is entered again by the same thread (a finaliser ran inside us) does nothing.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from backprobe.capture.private import function_modes, tracing_state, without_torch_function

OURS: Final = str(Path(__file__).parent)
_LOCK_SECONDS: Final = 2.0
"""Longest wait for another thread's body; a body takes microseconds, so more means a broken lock: one fact is lost."""

_ROOM: Final = 100
"""Frames that a body of ours may need; stopped half-way for want of them it would leave half a fact."""

_now = time.perf_counter_ns


class Guard:
    """Runs our bodies one at a time and keeps what went wrong in them.

    Attributes:
        errors: Errors of ours that were swallowed; first: text of the first.
        without_room: Bodies that were left out since the program was close to its recursion limit.
        own_ns: Time spent in our bodies, in nanoseconds.
    """

    def __init__(self, is_user_file: Callable[[str], bool]) -> None:
        self.errors = 0
        self.first: str | None = None
        self.without_room = 0
        self.own_ns = 0
        self._shields = False
        self._hidden: Any = None
        self._is_user_file = is_user_file
        self._lock: Any = threading.RLock()
        self._owner = 0

    def run(self, body: Callable[..., Any], *args: Any) -> Any:
        """What `body(*args)` returns, or None where it failed or was entered again."""
        me = threading.get_ident()
        if self._owner == me or tracing_state() is not None:  # a read of ours would join the user's trace, or warn
            return None
        start = 0
        try:  # a signal handler or trace function may run at any point from here, enter this again, or raise
            if not self._lock.acquire(timeout=_LOCK_SECONDS) or self._owner == me:
                return None
            start = _now()
            self._owner = me
            if not _has_room():
                self.without_room += 1
                return None
            if self._shields or function_modes():
                self._hide()
            return body(*args)
        except (RecursionError, MemoryError):
            return None  # the program is at its own limit: its next call meets it without us
        except Exception as error:
            if self.is_users(error):
                raise
            self.note(error)
            return None
        finally:
            if self._lock._is_owned():  # asked of the lock: an exception may come before its answer is kept
                try:
                    if self._hidden is not None:
                        self._hidden.__exit__(None, None, None)
                        self._hidden = None
                    self.own_ns += _now() - start if start else 0
                finally:
                    self._owner = 0
                    self._lock.release()

    def drop(self) -> None:
        """Run no body any more: a forked child inherited this, with its lock as another thread left it."""
        self.run = _nothing

    def shield(self) -> None:
        """A tensor of a subclass was met: from here on bodies run where its `__torch_function__` does not see them."""
        self._shields = True
        if self._hidden is None:
            self._hide()

    def _hide(self) -> None:
        self._hidden = without_torch_function()
        self._hidden.__enter__()

    def note(self, error: BaseException) -> None:
        """Count an error of ours."""
        self.errors += 1
        if self.first is None:
            try:
                self.first = "".join(traceback.format_exception(error))[-4000:]
            except Exception:
                self.first = type(error).__name__

    def is_users(self, error: BaseException) -> bool:
        """The user's own code raised it, inside of us."""
        tb = error.__traceback__
        while tb is not None:
            if self._is_user_file(tb.tb_frame.f_code.co_filename):
                return True
            tb = tb.tb_next
        return False


def _nothing(*_: Any) -> None:
    return None


def _has_room() -> bool:
    """There are `_ROOM` frames left up to the recursion limit; the interpreter tells only by refusing a lower one."""
    limit = sys.getrecursionlimit()
    if limit <= _ROOM:
        return False
    try:
        sys.setrecursionlimit(limit - _ROOM)
    except RecursionError:
        return False
    sys.setrecursionlimit(limit)
    return True


def without_ours(tb: TracebackType | None, *, most: int | None = None) -> TracebackType | None:
    """A traceback with the frames of this package left out.

    Args:
        most: The frames that the program would have had at most, where it ran into the recursion limit.
    """
    kept: list[TracebackType] = []
    while tb is not None:
        if not tb.tb_frame.f_code.co_filename.startswith(OURS):
            kept.append(tb)
        tb = tb.tb_next
    if most is not None:
        del kept[most:]
    chain: TracebackType | None = None
    for entry in reversed(kept):
        chain = TracebackType(chain, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return chain
