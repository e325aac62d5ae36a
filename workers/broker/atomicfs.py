"""kombu's filesystem transport with an atomic publish and an atomic take.

The stock transport writes under a message's final name, so that a reader takes half a file (kombu#1551); it takes by a
move into the system's temporary folder, which on another file system is a copy: two readers take the same message; and
it rewrites its table of bindings in place. Under load it lost 932 of 12,000 messages.

1. A message and a table become visible by a rename, whole.
2. A message is taken by a rename inside its own folder, which has one winner.
3. Nothing is synced to disk: a wake-up that a power cut loses is sent again.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
import uuid
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from queue import Empty
from typing import Any, Final

from kombu.exceptions import ChannelError
from kombu.transport import filesystem
from kombu.utils.encoding import bytes_to_str, str_to_bytes
from kombu.utils.json import dumps, loads

SPELL_SECONDS: Final = 0.25

LEFT_SECONDS: Final = 600.0
"""A dot-file that is older was left by a killed process."""


class Channel(filesystem.Channel):
    """One channel; the options of the transport name its folders, and it makes them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._listed: dict[str, deque[str]] = {}
        """By queue: names of the last look at the folder that were not tried yet. A look at each message made a
        backlog of 20,000 cost 20,000 looks of 20 ms."""
        for folder in (self.data_folder_in, self.data_folder_out, self.control_folder):
            Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        _drop_left(Path(self.data_folder_in))

    def _put(self, queue: str, payload: dict[str, Any], **_: Any) -> None:
        # the wall clock keeps the order across a reboot
        name = f"{time.time_ns():020d}_{uuid.uuid4().hex}.{queue}.msg"
        _write_whole(Path(self.data_folder_out) / name, dumps(payload))

    def _get(self, queue: str) -> dict[str, Any]:
        listed = self._listed.get(queue) or self._look(queue)
        while listed:
            name = listed.popleft()
            taken = Path(self.data_folder_in) / f".{name}.taken"
            try:
                taken.with_name(name).rename(taken)
            except FileNotFoundError:
                continue  # another reader was first
            payload = loads(bytes_to_str(taken.read_bytes()))
            taken.unlink()
            return payload
        raise Empty

    def _look(self, queue: str) -> deque[str]:
        """The names of the messages that are there now, the oldest first."""
        try:
            with os.scandir(self.data_folder_in) as entries:
                names = sorted(entry.name for entry in entries if _is_of(entry.name, queue))
        except FileNotFoundError:
            names = []  # the folder is away: a worker that took this for an error ended itself
        listed = self._listed[queue] = deque(names)
        return listed

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        binding = [routing_key or "", pattern or "", queue or ""]
        with self._bindings(exchange) as bindings:
            if binding not in bindings:
                bindings.insert(0, binding)

    def _delete(self, queue: str, exchange: str, routing_key: str, pattern: str, *_: Any, **__: Any) -> None:
        self._purge(queue)
        with self._bindings(exchange) as bindings:
            bindings[:] = [one for one in bindings if one != [routing_key or "", pattern or "", queue or ""]]

    @contextlib.contextmanager
    def _bindings(self, exchange: str) -> Iterator[list[list[str]]]:
        """The table of an exchange, to be changed while no other process changes it."""
        table = Path(self._exchange_file(exchange))
        with table.with_name(f".{table.name}.lock").open("wb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            before = [list(one) for one in self.get_table(exchange)]
            after = [list(one) for one in before]
            yield after
            if after != before:
                _write_whole(table, dumps(after))


class Transport(filesystem.Transport):
    """kombu asks for a class of this name."""

    Channel = Channel
    driver_type = "atomicfs"
    driver_name = "atomicfs"

    def drain_events(self, connection: Any, timeout: float | None = None) -> None:
        """Wait for a message, in short spells: Celery looks only between two whether it is to shut down."""
        super().drain_events(connection, None if timeout is None else min(timeout, SPELL_SECONDS))


def _is_of(name: str, queue: str) -> bool:
    return not name.startswith(".") and name.partition(".")[2] == f"{queue}.msg"


def _write_whole(final: Path, text: str) -> None:
    unfinished = final.with_name(f".{uuid.uuid4().hex}.unfinished")
    try:
        unfinished.write_bytes(str_to_bytes(text))
        unfinished.rename(final)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise ChannelError(f"cannot write {final}: {error}") from error


def _drop_left(folder: Path) -> None:
    too_old = time.time() - LEFT_SECONDS
    for path in folder.glob(".*"):
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_mtime < too_old:
                path.unlink()
