"""Ports and uids that belong to one test process alone, so that test processes run side by side.

A test process is numbered by pytest-xdist (`gw0`, `gw1`, ...); without it the number is 0. What two runs of the tests on
one machine could both take is offset by the process id as well.
"""

import os
import socket
from itertools import count

from workers.sandbox.levels.names import SLOT_UIDS

PORTS_FIRST, PORTS_EACH = 12_000, 600
"""Below 32768, where Linux begins to choose ports by itself: no outgoing connection takes one between look and use."""

SUPERVISORS = 60
"""So many of one test process have uids that no other one has; then they come again."""
UIDS_FIRST, UIDS_EACH = 200_000, SUPERVISORS * (SLOT_UIDS + 1)
_ports = count(os.getpid() % PORTS_EACH)
_uids = count()


def process_number() -> int:
    """0 for the first process of a test run, or for its only one."""
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


def free_port() -> int:
    """A port of 127.0.0.1 on which nothing listens, from this test process's own range.

    Raises:
        RuntimeError: all of the range are taken.
    """
    first = PORTS_FIRST + process_number() % 32 * PORTS_EACH
    for _ in range(PORTS_EACH):
        port = first + next(_ports) % PORTS_EACH
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise RuntimeError(f"no free port from {first} to {first + PORTS_EACH - 1}")


def own_uid() -> int:
    """The first of `SLOT_UIDS` + 1 uids that no other supervisor of the tests uses."""
    run = int(os.environ.get("PYTEST_XDIST_TESTRUNUID", f"{os.getpid():x}")[:6], 16) % 1000
    return UIDS_FIRST + (run * 32 + process_number() % 32) * UIDS_EACH + next(_uids) % SUPERVISORS * (SLOT_UIDS + 1)
