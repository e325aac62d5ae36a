"""The control messages between supervisor and zygote: numbers only, typed, one per packet.

1. A snippet never travels here: whatever the zygote holds, its next child can read. Text goes by sealed memfd, straight
   to the child.
2. Descriptors ride along by SCM_RIGHTS, in the order that `Fork` and `Started` name.
"""

from __future__ import annotations

import array
import os
import socket
from collections.abc import Sequence
from typing import Final

import msgspec

MAX_MESSAGE: Final = 4096
MAX_DESCRIPTORS: Final = 8


class Fork(msgspec.Struct, frozen=True, kw_only=True, tag="fork"):
    """Start one child. Descriptors: program (memfd; filled before `go`), stdin, stdout, stderr, record, sync.

    Attributes:
        memory_bytes: What the child may add to the zygote's address space; 0 means no such limit (CUDA reserves huge
            ranges).
        file_bytes: The largest file it may write.
        threads: Threads that torch may use.
        processes: How many it may have at one time.
        uid: Whom it becomes, of those that runs in flight share out; 0: it stays who the zygote is.
        placed: It says when it has a user namespace, and waits there until it was put into its cgroup and got its uid.
        laid_out: Its files are written into its own folder before it is locked down, and it may not write there.
        ahead: Nobody waits for it yet: it has time to run some of Backprobe's code before it says that it is locked.
    """

    serial: int
    cpu_seconds: int
    memory_bytes: int
    file_bytes: int
    threads: int
    processes: int = 1
    uid: int = 0
    placed: bool = False
    laid_out: bool = False
    ahead: bool = False


class Kill(msgspec.Struct, frozen=True, kw_only=True, tag="kill"):
    """End the child of this serial and all of its process group."""

    serial: int


class Ready(msgspec.Struct, frozen=True, kw_only=True, tag="ready"):
    """The zygote is warm; said again when it is warmer, and larger.

    Attributes:
        devices: Names of the devices that a process for one run has started.
        warms_on: It will say so again: in its next pause it gets warmer.
    """

    pid: int
    vm_bytes: int
    rss_bytes: int
    devices: tuple[str, ...] = ()
    warms_on: bool = False


class Unready(msgspec.Struct, frozen=True, kw_only=True, tag="unready"):
    """The process cannot become warm, and ends: its device cannot be used. Said instead of `Ready`."""

    why: str


class Started(msgspec.Struct, frozen=True, kw_only=True, tag="started"):
    """A child was forked. Descriptors: its pidfd and its folder of /proc, the handles that name it for good."""

    serial: int


class ChildEnded(msgspec.Struct, frozen=True, kw_only=True, tag="ended"):
    """A child was reaped, and its process group and orphans are gone.

    Attributes:
        status: As `os.wait4` gives it.
        cpu_seconds: User and system, with the descendants it waited for.
        rss_bytes: Of the zygote now; it grows when forks leave something behind.
    """

    serial: int
    status: int
    cpu_seconds: float
    max_rss_bytes: int
    rss_bytes: int


class ForkRefused(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    """The zygote is no longer fit to fork; replace it."""

    serial: int
    why: str


Order = Fork | Kill
Report = Ready | Unready | Started | ChildEnded | ForkRefused

_ENCODER: Final = msgspec.msgpack.Encoder()
_ORDERS: Final = msgspec.msgpack.Decoder(Order)
_REPORTS: Final = msgspec.msgpack.Decoder(Report)


def send(control: socket.socket, message: Order | Report, descriptors: Sequence[int] = ()) -> None:
    """Send one message and copies of the descriptors.

    Raises:
        OSError: the other side is gone, or does not read any more.
    """
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
    control.sendmsg([_ENCODER.encode(message)], rights, socket.MSG_NOSIGNAL)


def receive_order(control: socket.socket) -> tuple[Order | None, list[int]]:
    """Receive the next order and its descriptors; None: the supervisor has gone."""
    body, descriptors = _receive(control)
    return (_ORDERS.decode(body) if body else None), descriptors


def receive_report(control: socket.socket) -> tuple[Report | None, list[int]]:
    """Receive the next report and its descriptors; None: the zygote has gone, or sends what is no report."""
    try:
        body, descriptors = _receive(control)
    except ConnectionError:
        return None, []
    try:
        return (_REPORTS.decode(body) if body else None), descriptors
    except msgspec.DecodeError:
        close_all(descriptors)
        return None, []


def close_all(descriptors: Sequence[int]) -> None:
    """Close each of them."""
    for descriptor in descriptors:
        os.close(descriptor)


def _receive(control: socket.socket) -> tuple[bytes, list[int]]:
    body, ancillary, _, _ = control.recvmsg(
        MAX_MESSAGE, socket.CMSG_SPACE(MAX_DESCRIPTORS * array.array("i").itemsize), socket.MSG_CMSG_CLOEXEC
    )
    descriptors = array.array("i")
    for level, kind, payload in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(payload[: len(payload) - len(payload) % descriptors.itemsize])
    return body, list(descriptors)
