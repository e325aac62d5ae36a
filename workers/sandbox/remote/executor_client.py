"""Ask an executor behind a unix socket: for a zygote, and for what its container offers. `executor.py` answers."""

from __future__ import annotations

import socket
import time
from dataclasses import replace
from typing import Final

import msgspec

from workers.sandbox.levels.names import Confinement
from workers.sandbox.remote.boot import Link

ANSWER_SECONDS: Final = 5.0
"""How long an executor may take to take a connection or to answer a question."""

WANT_ZYGOTE: Final = b"zygote"
CHECK: Final = b"check"
OK: Final = b"ok"
OFFER: Final = b"offer"
CPUS: Final = b"cpus"
OOM_KILLS: Final = b"oom-kills"
"""The first message on an executor's socket."""


def connect_executor(path: str) -> Link:
    """Ask the executor at this unix socket for a zygote of our own.

    Raises:
        OSError: nobody listens there.
    """
    control = _connect_socket(path)
    control.send(WANT_ZYGOTE)
    control.setblocking(False)
    return Link(control=control)


def executor_answers(path: str) -> bool:
    """Return whether an executor listens at this unix socket."""
    return _ask(path, CHECK) == OK


def executor_cpus(path: str) -> float | None:
    """Return the processors that an executor may use; None: it does not say."""
    said = _ask(path, CPUS)
    return float(said) if said.replace(b".", b"", 1).isdigit() else None


def executor_oom_kills(path: str) -> int:
    """Return how many processes of an executor's container the kernel has killed for want of memory; 0: unknown."""
    return int(said) if (said := _ask(path, OOM_KILLS)).isdigit() else 0


def _ask(path: str, question: bytes) -> bytes:
    """Return an executor's answer; empty: nobody listens there, or it knows no such question."""
    try:
        with _connect_socket(path) as connection:
            connection.send(question)
            return connection.recv(64)
    except OSError:
        return b""


def executor_offers(path: str, patience_seconds: float) -> Confinement:
    """How an executor confines its children; one that is not there yet is waited for.

    Its children are attested from here; a cgroup or a uid of their own this side cannot give them.

    Raises:
        OSError: none answered in time, or what it said is no confinement.
    """
    deadline = time.monotonic() + patience_seconds
    while True:
        try:
            with _connect_socket(path) as connection:
                connection.send(OFFER)
                said = msgspec.json.decode(connection.recv(4096), type=Confinement)
                return replace(said, uids=0, cgroups=False, no_cgroups="the executor is in another container")
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        except msgspec.DecodeError as error:
            raise OSError(f"the executor at {path} does not say how it confines programs: {error}") from None


def _connect_socket(path: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.settimeout(ANSWER_SECONDS)  # one that hangs would else hold the selector thread for ever
    try:
        connection.connect(path)
    except OSError:
        connection.close()
        raise
    return connection
