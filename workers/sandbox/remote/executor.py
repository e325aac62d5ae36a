"""Zygotes for supervisors in other containers, on a unix socket: `backprobe executor --socket PATH`.

The executing container has no network, no secret and no environment but its own; the supervisor beside it reaches the
database. A connection that says `zygote` becomes the control socket of a fresh one; descriptors travel over it. One
that says `check` is answered `ok`, one that says `offer` by how children are confined here, one that says `cpus` or
`oom-kills` by a number.
"""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import socket
import subprocess
import threading
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec

from workers.machine_memory import machine_bytes, memory_for_runs
from workers.sandbox.levels.names import Confinement
from workers.sandbox.levels.oom_kills import count_oom_kills
from workers.sandbox.levels.usable_cpus import usable_cpus
from workers.sandbox.process import orphans
from workers.sandbox.remote.boot import TRUSTED, popen_keeper, popen_zygote
from workers.sandbox.remote.executor_client import CHECK, CPUS, OFFER, OK, OOM_KILLS, WANT_ZYGOTE
from workers.signals import set_on_signals

MOST_ZYGOTES: Final = 8
"""A worker holds one, and two for the moment in which one replaces the other."""

TURN_SECONDS: Final = 0.5
END_SECONDS: Final = 3.0

_log: Final = logging.getLogger(__name__)


class Executor:
    """Serves one socket.

    Args:
        visible_devices: CUDA_VISIBLE_DEVICES of the zygotes: "" hides every GPU, None leaves all visible.
        confinement: What every zygote gives its children.
        gpu_memory_fraction: Each is a process for one run with devices, which may take so much of their memory; None:
            they are zygotes.
        further: Zygotes go on warming up in their pauses.
    """

    def __init__(
        self,
        path: Path,
        visible_devices: str | None = "",
        confinement: Confinement = TRUSTED,
        gpu_memory_fraction: float | None = None,
        *,
        further: bool = True,
    ) -> None:
        self._further = further
        self._gpu_memory_fraction = gpu_memory_fraction
        orphans.adopt_orphans()
        self._confinement = confinement
        self._path, self._visible_devices = path, visible_devices
        self._zygotes: list[subprocess.Popen[bytes]] = []
        self._selector = selectors.DefaultSelector()
        self._listener = _listener(path)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)

    def serve(self, stop: threading.Event) -> None:
        """Work until `stop` is set; then end every zygote."""
        while not stop.is_set():
            for key, _ in self._selector.select(TURN_SECONDS):
                key.data()
            self._bury()
        self._close()

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        connection.setblocking(False)

        def hear() -> None:
            self._selector.unregister(connection)
            with connection:
                self._answer(connection)

        self._selector.register(connection, selectors.EVENT_READ, hear)

    def _answer(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            said = connection.recv(64)
            if said == CHECK:
                connection.send(OK)
            elif said == OFFER:
                memory_bytes = memory_for_runs(machine_bytes())
                connection.send(msgspec.json.encode(replace(self._confinement, memory_bytes=memory_bytes)))
            elif said == CPUS:
                connection.send(str(usable_cpus()).encode())
            elif said == OOM_KILLS:
                connection.send(str(count_oom_kills()).encode())
            elif said == WANT_ZYGOTE and len(self._zygotes) < MOST_ZYGOTES:
                connection.setblocking(True)
                self._zygotes.append(self._popen(connection))
            elif said == WANT_ZYGOTE:
                _log.error("%d zygotes are running, which is the most: a supervisor was turned away", MOST_ZYGOTES)

    def _popen(self, connection: socket.socket) -> subprocess.Popen[bytes]:
        if self._gpu_memory_fraction is None:
            return popen_zygote(connection, self._visible_devices, self._confinement, further=self._further)
        return popen_keeper(connection, self._visible_devices, self._gpu_memory_fraction, confinement=self._confinement)

    def _bury(self) -> None:
        """Reap zygotes that ended, and end what their runs left behind."""
        ended = [zygote for zygote in self._zygotes if zygote.poll() is not None]
        if ended:
            self._zygotes = [zygote for zygote in self._zygotes if zygote not in ended]
            orphans.end_orphans([zygote.pid for zygote in self._zygotes], 0)

    def _close(self) -> None:
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        self._selector.close()
        self._path.unlink(missing_ok=True)
        for zygote in self._zygotes:
            zygote.terminate()
        for zygote in self._zygotes:
            try:
                zygote.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                zygote.kill()  # its children die with it
                zygote.wait()
        orphans.end_orphans((), 0)


def _listener(path: Path) -> socket.socket:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
    finally:
        os.umask(before)
    listener.listen(16)
    return listener


def run(
    path: Path,
    visible_devices: str | None,
    confinement: Confinement = TRUSTED,
    gpu_memory_fraction: float | None = None,
    *,
    further: bool = True,
) -> None:
    """Serve until SIGTERM or SIGINT."""
    stop = threading.Event()
    executor = Executor(path, visible_devices, confinement, gpu_memory_fraction, further=further)
    set_on_signals(stop)
    executor.serve(stop)
