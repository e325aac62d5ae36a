"""Child processes that the program starts: they are followed where that was asked for, or counted as not looked at.

A child of `multiprocessing` then gets a separate record (`child_run.py`). A worker of torch's `DataLoader` and
the server of a `multiprocessing.Manager` compute no gradients: they are no news.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from backprobe.record.processes import Family

if TYPE_CHECKING:
    from backprobe.capture.recorder import CaptureSession

WHAT: Final = "child processes"
FOLLOWED: Final = "followed child processes"
_WHY: Final = "what they did is not in the record"
_ELSEWHERE: Final = "what each of them did is in its own record"
_SERVANTS: Final = ("torch.utils.data.", "multiprocessing.managers")
_SUBPROCESS: Final = "subprocess.py"


class Starting(threading.local):
    """What the start of a process hands to the child, in the thread that starts it.

    Attributes:
        here: Of the calling thread.
        place: Where the record of the process goes that is being started; None: it is not followed.
    """

    here: Starting
    place: Family | None = None


Starting.here = Starting()


def wait_for_all() -> None:
    """If children still run, end the program as the interpreter would: its threads, then what it left to `atexit`.

    There `multiprocessing` waits for them; nothing of it is left to do when the interpreter itself ends.
    """
    if multiprocessing.active_children():
        threading._shutdown()  # type: ignore[attr-defined]  # what the interpreter calls
        atexit._run_exitfuncs()


class Children:
    """Counts the processes that the program starts and that may compute gradients."""

    def __init__(self, recorder: CaptureSession) -> None:
        self._writer = recorder.writer
        self._is_user_file: Callable[[str], bool] = recorder.sites.is_user_file
        self._family, self._followed = recorder.options.family, list[Family]()

    def note_start(self, process: Any) -> None:
        """Note that a `multiprocessing.Process` begins, whatever its start method."""
        target = getattr(process, "_target", None)
        if str(getattr(target, "__module__", "")).startswith(_SERVANTS):
            return
        if self._family is None:
            self._writer.cut(WHAT, _WHY)
            return
        place = self._family.child(len(self._followed) + 1)
        self._followed.append(place)
        place.note(name=process.name)
        Starting.here.place = place

    def settle(self) -> None:
        """Say of those that were to be followed which left a record; those that still run are not waited for."""
        for place in self._followed:
            if place.has_begun():
                self._writer.cut(FOLLOWED, _ELSEWHERE)
            else:
                self._writer.cut(WHAT, _WHY)

    def command_started(self, command: Any, executable: Any, caller: FrameType | None) -> None:
        """`subprocess` starts a command: one of Python's, if the program's own code asked for it."""
        while caller is not None and caller.f_code.co_filename.endswith(_SUBPROCESS):
            caller = caller.f_back
        if caller is not None and self._is_user_file(caller.f_code.co_filename) and _is_python(executable or command):
            self._writer.cut(WHAT, _WHY)

    def note_fork(self, caller: FrameType) -> None:
        """Note a fork by the program's own code: a copy goes on beside this process."""
        if self._is_user_file(caller.f_code.co_filename):
            self._writer.cut(WHAT, _WHY)


def _is_python(command: Any) -> bool:
    """Return whether the first word of a command names a Python."""
    if type(command) is str:  # of a shell, whose quoting is its own
        words: list[Any] = command.split(None, 1)[:1]
    else:
        words = list(command[:1]) if type(command) in (list, tuple) else [command]
    first = os.fsdecode(words[0]) if words and isinstance(words[0], str | bytes | os.PathLike) else ""
    return first == sys.executable or os.path.basename(first).startswith("python")
