"""Which variable of a frame holds an object: told by comparing addresses, with no reference made and no `f_locals`.

Up to Python 3.12 `f_locals` copies every variable into a dictionary that lives as long as the frame: a tensor would
outlive its `del`. Here the frame's own slots are read as numbers; what they hold is never touched.

1. The layout is CPython's and differs by version, so it is tried once on a frame of this module; where it does not fit,
   nothing is read and `can_read` is false.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from functools import cache
from types import FrameType
from typing import Final

_WORD: Final = ctypes.sizeof(ctypes.c_void_p)
_FRAME: Final = 3 * _WORD
"""Where a frame object points at its interpreter frame: behind its head and `f_back` (CPython 3.11-3.13, pyframe.h)."""

_SLOTS: Final = 9 * _WORD
"""Where an interpreter frame's variables begin: `localsplus` (CPython 3.11-3.13, pycore_frame.h)."""


@cache
def can_read() -> bool:
    """Return whether the layout of frames is the one that this file knows."""
    if sys.implementation.name != "cpython" or not (3, 11) <= sys.version_info[:2] <= (3, 13):
        return False
    first, second = object(), object()
    found = _addresses(sys._getframe())
    return found.get(id(first)) == "first" and found.get(id(second)) == "second"


def variables_of(frame: FrameType) -> dict[int, str]:
    """Map the address of what each variable of a frame holds to its name; of two that hold one object the first.

    A variable that a nested function uses is in a cell: its address is the cell's.
    """
    return _addresses(frame) if can_read() else {}


def frames_around(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and those that called it, innermost first."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def _addresses(frame: FrameType) -> dict[int, str]:
    code = frame.f_code
    names = (*code.co_varnames, *(n for n in code.co_cellvars if n not in code.co_varnames), *code.co_freevars)
    inner = ctypes.c_void_p.from_address(id(frame) + _FRAME).value
    if not inner:
        return {}
    slots = (ctypes.c_void_p * len(names)).from_address(inner + _SLOTS)
    found: dict[int, str] = {}
    for address, name in zip(slots, names, strict=True):
        if address:
            found.setdefault(address, name)
    return found
