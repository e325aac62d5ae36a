"""The C stacks of this process: how deep a graph of wrapped nodes they can free.

Freeing a chain of nodes that have Python wrappers recurses in C; a chain that is too deep for the stack of the thread
that frees it kills the process. glibc takes the stack of new threads from the limit that the process was started with.
"""

from __future__ import annotations

import ctypes
import resource
import threading
from typing import Final

RAISED: Final = 512 << 20
"""What the soft limit is raised to where the process is ours; it frees a chain of 600 000 nodes."""

WAS: Final = "BACKPROBE_STACK_WAS"
"""Environment variable that carries the former soft limit into a process that was started with the raised one."""

_BYTES_PER_NODE: Final = 1600
"""Stack that one freed wrapped node may cost: an 8-fold margin over what was measured."""

_BYTES_PER_NODE_ELSEWHERE: Final = 400
"""The same with a 2-fold margin, for a thread beside a main one whose stack was raised: it seldom frees a graph."""

_MOST: Final = 200_000
_UNLIMITED_THREAD: Final = 2 << 20
"""What glibc gives a thread where the limit is "unlimited"."""

_ATTRIBUTE_BYTES: Final = 256
"""More than a `pthread_attr_t` has on any platform."""

_raised_from: list[int] = []


def main_bytes() -> int:
    """Return the most that the main thread's stack may grow to; 0 if there is no limit."""
    soft, _ = resource.getrlimit(resource.RLIMIT_STACK)
    return 0 if soft == resource.RLIM_INFINITY else soft


def thread_bytes() -> int:
    """Return the stack of the next thread that Python, or a library in C, starts; the smaller of both."""
    own, default = threading.stack_size(), _default()
    given = default or main_bytes() or _UNLIMITED_THREAD
    return min(own, given) if own else given


def own_budget() -> int:
    """Return how many wrapped nodes may live at once in this process."""
    return node_budget(main_bytes(), thread_bytes())


def node_budget(main: int, thread: int) -> int:
    """Return how many wrapped nodes may live at once.

    Args:
        main: Bytes of the main thread's stack, 0 without a limit. thread: of the smallest other one.
    """
    smallest = min(main, thread) if main else thread
    if main >= RAISED > thread:
        return min(_MOST, main // _BYTES_PER_NODE, thread // _BYTES_PER_NODE_ELSEWHERE)
    return min(_MOST, smallest // _BYTES_PER_NODE)


def find_raised_limit() -> tuple[int, int] | None:
    """Return the soft and hard limit for a child process; None if the limit is high enough, or cannot rise."""
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    if soft == resource.RLIM_INFINITY or soft >= RAISED:
        return None
    wanted = RAISED if hard == resource.RLIM_INFINITY else min(RAISED, hard)
    return (wanted, hard) if wanted > soft else None


def settle(was: int) -> None:
    """In a process that was started with a raised limit: threads get the stack that they would have had.

    Args:
        was: The soft limit before it was raised.
    """
    _raised_from[:] = [was]
    attributes = ctypes.create_string_buffer(_ATTRIBUTE_BYTES)
    try:
        libc = ctypes.CDLL(None)
        if libc.pthread_getattr_default_np(attributes) == 0:
            libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(was))
            libc.pthread_setattr_default_np(attributes)
            libc.pthread_attr_destroy(attributes)
    except (OSError, AttributeError):
        return  # another C library than glibc: its threads never had their stack from the limit


def deviations() -> tuple[str, ...]:
    """List what a program can notice of a raised limit."""
    if not _raised_from:
        return ()
    said = (
        f"The soft limit of the stack, RLIMIT_STACK, is {main_bytes() >> 20} MiB instead of {_raised_from[0] >> 20}, "
        "also in processes that the program starts: freeing a deep graph under capture needs it."
    )
    return (said,)


def _default() -> int:
    """glibc's default stack of a thread; 0 where it cannot be asked."""
    attributes, size = ctypes.create_string_buffer(_ATTRIBUTE_BYTES), ctypes.c_size_t(0)
    try:
        libc = ctypes.CDLL(None)
        if libc.pthread_getattr_default_np(attributes) != 0:
            return 0
        libc.pthread_attr_getstacksize(attributes, ctypes.byref(size))
        libc.pthread_attr_destroy(attributes)
    except (OSError, AttributeError):
        return 0
    return size.value
