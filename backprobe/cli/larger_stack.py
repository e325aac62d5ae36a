"""Starts the command again with a larger stack, in the same process: only then do deep graphs fit.

The limit counts when a program is started, so the interpreter is replaced by itself (`execv`) before anything was read,
opened or imported that matters: the process id, the standard streams, the exit code and who waits for it stay.
"""

from __future__ import annotations

import os
import sys


def with_a_grown_stack() -> None:
    """Go on in an interpreter with a larger stack; come back at once in that one, and where it cannot be had."""
    if sys.platform == "win32":
        return
    import resource

    from backprobe.stack import WAS, find_raised_limit, settle

    was = os.environ.pop(WAS, None)
    if was is not None:
        settle(int(was))
        return
    limits = find_raised_limit()
    if limits is None or sys.gettrace() is not None or not sys.executable or not sys.orig_argv:
        return  # a debugger or a coverage tool would lose what it set up
    before = resource.getrlimit(resource.RLIMIT_STACK)
    try:
        resource.setrlimit(resource.RLIMIT_STACK, limits)
        os.execve(sys.executable, sys.orig_argv, {**os.environ, WAS: str(before[0])})  # noqa: S606 - this very command
    except (OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_STACK, before)
