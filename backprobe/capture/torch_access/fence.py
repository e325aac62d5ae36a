"""The fence around all code of Backprobe that runs inside the user's program.

1. An internal error never reaches the user: it is counted, the first one's text is kept.
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

import backprobe
from backprobe.capture.torch_access import native
from backprobe.capture.torch_access.torch_internals import function_modes, tracing_state, without_torch_function

OURS: Final = str(Path(str(backprobe.__file__)).parent / "capture")
_LOCK_SECONDS: Final = 2.0
"""Longest wait for another thread's body; a body takes microseconds, so more means a broken lock: one fact is lost."""

_ROOM: Final = 100
"""Frames that Backprobe's code may need; stopped half-way for want of them it would leave half a fact."""

_ANSWERS: Final = frozenset({"__torch_dispatch__", "__torch_function__"})
"""Methods by which a class of the user's answers what is asked of its tensors."""

_now = time.perf_counter_ns


class Gate:
    """Lets only one thread at a time run Backprobe's code.

    Attributes:
        own_ns: Time spent inside, in nanoseconds.
        without_room: Bodies that were left out since the program was close to its recursion limit.
    """

    def __init__(self) -> None:
        self.own_ns = 0
        self.without_room = 0
        self._shields = False
        self._hidden: Any = None
        self._lock: Any = threading.RLock()
        self._owner = 0
        self._since = 0

    def enter(self) -> bool:
        """Go in; false if this body is to be left out: it was entered again, is traced, or would not have room."""
        me = threading.get_ident()
        if self._owner == me or tracing_state() is not None:  # a read by Backprobe would join the user's trace, or warn
            return False
        if not self._lock.acquire(timeout=_LOCK_SECONDS) or self._owner == me:
            return False
        self._since = _now()
        self._owner = me
        if not _has_room():
            self.without_room += 1
            self.leave()
            return False
        if self._shields or function_modes():
            self._hide()
        return True

    def is_mine(self) -> bool:
        """Return whether this thread is inside."""
        return self._lock._is_owned()  # asked of the lock: an exception may come before `enter` answers

    def leave(self) -> None:
        """Go out."""
        try:
            if self._hidden is not None:
                self._hidden.__exit__(None, None, None)
                self._hidden = None
            self.own_ns += _now() - self._since if self._since else 0
        finally:
            self._owner = self._since = 0
            self._lock.release()

    def shield(self) -> None:
        """Hide bodies from now on from `__torch_function__`, because a tensor of a subclass was met."""
        self._shields = True
        if self._hidden is None:
            self._hide()

    def _hide(self) -> None:
        self._hidden = without_torch_function()
        self._hidden.__enter__()


class Guard:
    """Runs our bodies and keeps what went wrong in them.

    Attributes:
        errors: Internal errors that were swallowed; first: text of the first.
    """

    def __init__(self, is_user_file: Callable[[str], bool]) -> None:
        self.errors = 0
        self.first: str | None = None
        self.gate = native.choose_class(Gate)()
        self._is_user_file = is_user_file

    @property
    def own_ns(self) -> int:
        """Time spent in our bodies, in nanoseconds."""
        return self.gate.own_ns

    @own_ns.setter
    def own_ns(self, spent: int) -> None:
        self.gate.own_ns = spent

    @property
    def without_room(self) -> int:
        """Bodies that were left out since the program was close to its recursion limit."""
        return self.gate.without_room

    def drop(self) -> None:
        """Run no body any more: a forked child inherited this, with its lock as another thread left it."""
        self.run = _nothing  # type: ignore[method-assign]  # it takes anything

    def run(self, body: Callable[..., Any], *args: Any) -> Any:
        """Return what `body(*args)` returns, or None if it failed or was entered again."""
        gate = self.gate
        if gate.is_mine():
            return None
        try:  # a signal handler or trace function may run at any point from here, enter this again, or raise
            return body(*args) if gate.enter() else None
        except (RecursionError, MemoryError):
            return None  # the program is at its own limit: its next call meets it without us
        except Exception as error:
            if self.is_users(error):
                raise
            self.note(error)
            return None
        finally:
            if gate.is_mine():
                gate.leave()

    def shield(self) -> None:
        """Shield bodies as `Gate.shield` does, because a tensor of a subclass was met."""
        self.gate.shield()

    def lightly(self, body: Callable[..., bool | None], *args: Any) -> bool | None:
        """Return what `body(*args)` returns; True if it failed. It needs no gate because it asks torch for nothing."""
        try:
            return body(*args)
        except (RecursionError, MemoryError):
            return True
        except Exception as error:
            if self.is_users(error):
                raise
            self.note(error)
            return True

    def apart(self, body: Callable[..., Any], *args: Any) -> Any:
        """Return what `body(*args)` returns, None if it failed; for what is done after the program has ended."""
        try:
            return body(*args)
        except Exception as error:
            self.note(error)
            return None

    def note(self, error: BaseException) -> None:
        """Count an internal error."""
        self.errors += 1
        if self.first is None:
            try:
                self.first = "".join(traceback.format_exception(error))[-4000:]
            except Exception:
                self.first = type(error).__name__

    def is_users(self, error: BaseException) -> bool:
        """Return whether the user's code raised it inside of Backprobe, though no call by Backprobe ran that code.

        A signal handler's error is the user's. That of a tensor subclass which answers a read by Backprobe is not: the
        program made no such call. A handler that raises while a subclass answers us is taken for the latter.
        """
        tb = error.__traceback__
        try:
            while tb is not None:
                if tb.tb_frame.f_code.co_name in _ANSWERS:
                    return False
                if self._is_user_file(tb.tb_frame.f_code.co_filename):
                    return True
                tb = tb.tb_next
        except Exception as ours:
            self.note(ours)
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
    """Return a traceback with the frames of this package left out.

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
