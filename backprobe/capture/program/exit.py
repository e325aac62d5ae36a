"""How a program begins and ends as under plain `python`: its seed, its exit code, its last traceback."""

from __future__ import annotations

import random
import sys
import traceback

import torch


def exit_code(error: BaseException) -> int:
    """What Python would have exited with."""
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
