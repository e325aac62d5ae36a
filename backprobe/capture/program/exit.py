"""How a program begins and ends as under plain `python`: its seed, its exit code, its last traceback."""

from __future__ import annotations

import random
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import torch
from torch.nn.parallel import DistributedDataParallel

if TYPE_CHECKING:
    from backprobe.capture.tracking.training.modules import Modules


def exit_code(error: BaseException) -> int:
    """Return what Python would have exited with."""
    if isinstance(error, SystemExit):
        if error.code is None:
            return 0
        return error.code & 0xFF if isinstance(error.code, int) else 1
    return 130 if isinstance(error, KeyboardInterrupt) else 1


def show(error: BaseException, *, in_memory: bool) -> None:
    """Print what Python prints when an exception ends a program."""
    if isinstance(error, SystemExit):
        if error.code is not None and not isinstance(error.code, int):
            sys.stderr.write(f"{error.code}\n")
        return
    if in_memory and sys.excepthook is sys.__excepthook__:
        # the interpreter's own printer reads lines from disk only
        traceback.print_exception(type(error), error, error.__traceback__)
        return
    sys.excepthook(type(error), error, error.__traceback__)


def seed(number: int | None) -> None:
    """Seed torch, `random` and numpy; None: not at all."""
    if number is None:
        return
    torch.manual_seed(number)
    random.seed(number)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(number % 2**32)


_WRAPPERS: Final[list[torch.nn.Module]] = []


def keep_wrappers(modules: Modules) -> None:
    """Let modules that average gradients over processes live to the end of this one.

    Their destructor joins threads of gloo while it holds the interpreter, for which one of them may wait: 1 of 73
    programs was seen to hang there when the recorder let go of what the program had made.
    """
    _WRAPPERS.extend(module for module in modules.alive() if isinstance(module, DistributedDataParallel))


_TIMERS: Final = [
    getattr(signal, name) for name in ("ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF") if hasattr(signal, name)
]


@contextmanager
def own_timers() -> Iterator[None]:
    """Timers that the program set and left running end with it: their signal is not for the report.

    Those that ran before it belong to whoever runs the program, and go on.
    """
    free = [timer for timer in _TIMERS if signal.getitimer(timer)[0] == 0]
    try:
        yield
    finally:
        for timer in free:
            signal.setitimer(timer, 0)
