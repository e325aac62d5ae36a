"""What a warm process knows and does about its own memory."""

from __future__ import annotations

import os
import weakref
from pathlib import Path


def memory() -> tuple[int, int]:
    """Address space and resident memory of this process, in bytes."""
    pages = Path("/proc/self/statm").read_text("ascii").split()
    return int(pages[0]) * os.sysconf("SC_PAGE_SIZE"), int(pages[1]) * os.sysconf("SC_PAGE_SIZE")


def forget_finalizers() -> None:
    """Drop the registered finalizers. A child's process is over when they would run, so nothing needs to be undone.

    torch registers one for each of its 180 operator libraries; they took 20 ms of a child that lives for 20, and merely
    to look at each of them at its end copied a page in twenty of all that it copied.
    """
    weakref.finalize._registry.clear()  # noqa: SLF001 # pyright: ignore[reportAttributeAccessIssue] - no public way
