"""At level `process`, where runs share the host name of the machine, its name is not shown to them.

The filter of system calls refuses `uname`, whose answer holds the name. What Python asks of it is answered here.
"""

from __future__ import annotations

import os
import platform
import socket
from typing import Final

from backprobe.isolation import IsolationLevel

NAME: Final = "localhost"


def hide_host_name(level: IsolationLevel) -> None:
    """At `process`, let `os.uname`, `platform` and `socket` name no machine; in the warm process, before it forks.

    `platform` keeps an answer once it has one, so it asks again here: children would find the name in their memory.
    """
    if level != "process":
        return
    seen = os.uname()
    hidden = os.uname_result((seen.sysname, NAME, seen.release, seen.version, seen.machine))
    os.uname = lambda: hidden
    socket.gethostname = lambda: NAME
    setattr(platform, "_uname_cache", None)  # noqa: B010 - a private name, and the only way
