"""Child processes that the program starts: nothing of them is in the record, and that is said.

A worker of torch's `DataLoader` and the server of a `multiprocessing.Manager` compute no gradients: they are no news.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from backprobe.capture.recorder import Recorder

WHAT: Final = "child processes"
_WHY: Final = "what they did is not in the record"
_SERVANTS: Final = ("torch.utils.data.", "multiprocessing.managers")
_SUBPROCESS: Final = "subprocess.py"


class Children:
    """Counts the processes that the program starts and that may compute gradients."""

    def __init__(self, recorder: Recorder) -> None:
        self._writer = recorder.writer
        self._is_user_file: Callable[[str], bool] = recorder.sites.is_user_file

    def started(self, process: Any) -> None:
        """A `multiprocessing.Process` begins, whatever its start method."""
        target = getattr(process, "_target", None)
        if not str(getattr(target, "__module__", "")).startswith(_SERVANTS):
            self._writer.cut(WHAT, _WHY)

    def command_started(self, command: Any, executable: Any, caller: FrameType | None) -> None:
        """`subprocess` starts a command: one of Python's, if the program's own code asked for it."""
        while caller is not None and caller.f_code.co_filename.endswith(_SUBPROCESS):
            caller = caller.f_back
        if caller is not None and self._is_user_file(caller.f_code.co_filename) and _is_python(executable or command):
            self._writer.cut(WHAT, _WHY)

    def forked(self, caller: FrameType) -> None:
        """The process forked: where the program's own code did it, a copy goes on beside this one."""
        if self._is_user_file(caller.f_code.co_filename):
            self._writer.cut(WHAT, _WHY)


def _is_python(command: Any) -> bool:
    """The first word of a command names a Python."""
    if type(command) is str:  # of a shell, whose quoting is its own
        words: list[Any] = command.split(None, 1)[:1]
    else:
        words = list(command[:1]) if type(command) in (list, tuple) else [command]
    first = os.fsdecode(words[0]) if words and isinstance(words[0], str | bytes | os.PathLike) else ""
    return first == sys.executable or os.path.basename(first).startswith("python")
