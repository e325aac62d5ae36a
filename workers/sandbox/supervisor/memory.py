"""The supervisor's own memory: what a big record took is given back to the machine."""

from __future__ import annotations

import ctypes
from typing import Final

_TRIM: Final = getattr(ctypes.CDLL(None), "malloc_trim", None)
"""glibc's; no other C library keeps what was freed for as long."""


def give_back_memory() -> None:
    """Hand freed memory back to the kernel: glibc keeps it for the next allocation, however long that takes."""
    if _TRIM is not None:
        _TRIM(0)
