"""kombu's filesystem transport with an atomic publish, an atomic take, and nothing lost with a killed reader.

The stock transport writes under a message's final name, so that a reader takes half a file (kombu#1551); it takes by a
move into the system's temporary folder, which on another file system is a copy: two readers take the same message; and
it rewrites its table of bindings in place. Under load it lost 932 of 12,000 messages.

1. A message and a table become visible by a rename, whole.
2. A message is taken by a rename inside its own folder, which has one winner, and is there until it is acknowledged.
3. A reader holds a lock on its own file for as long as it lives, and its name is part of the names of what it has
   in hand. What a dead reader had in hand is given back by the next one that looks: once more, and never lost.
4. Nothing is synced to disk: a wake-up that a power cut loses is sent again.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import time
import uuid
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from queue import Empty
from typing import IO, Any, Final

from kombu.exceptions import ChannelError
from kombu.transport import filesystem
from kombu.utils.encoding import bytes_to_str, str_to_bytes
from kombu.utils.json import dumps, loads

SPELL_SECONDS: Final = 0.25
"""Celery hears of a signal between two."""

_TAKEN: Final = ".taken"
_OWNER: Final = ".reader"

LEFT_SECONDS: Final = 600.0
"""An unfinished message, or a dead reader's lock, that is older was left by a killed process."""

_log: Final = logging.getLogger(__name__)


class Channel(filesystem.Channel):
    """One channel; the options of the transport name its folders, and it makes them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._listed: dict[str, deque[str]] = {}
        """By queue: names of the last look at the folder that were not tried yet. A look at each message made a
        backlog of 20,000 cost 20,000 looks of 20 ms."""
        self._reader = uuid.uuid4().hex
        self._alive: IO[bytes] | None = None
        """The lock that says so, from the first message on."""
        self._in_hand: dict[str, Path] = {}
        """By delivery tag: messages taken and not acknowledged."""
        self._forgetful: set[str] = set()
        """Queues whose consumers acknowledge nothing."""
        for folder in (self.data_folder_in, self.data_folder_out, self.control_folder):
            Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        _drop_left(Path(self.data_folder_in), Path(self.control_folder))

    def _put(self, queue: str, payload: dict[str, Any], **_: Any) -> None:
        # the wall clock keeps the order across a reboot
        name = f"{time.time_ns():020d}_{uuid.uuid4().hex}.{queue}.msg"
        _write_whole(Path(self.data_folder_out) / name, dumps(payload))

    def _get(self, queue: str) -> dict[str, Any]:
        listed = self._listed.get(queue) or self._look(queue)
        while listed:
            name = listed.popleft()
            taken = Path(self.data_folder_in) / f".{name}.{self._living()}{_TAKEN}"
            try:
                taken.with_name(name).rename(taken)
            except FileNotFoundError:
                continue  # another reader was first
            try:
                payload: dict[str, Any] = loads(bytes_to_str(taken.read_bytes()))
                tag: str | None = payload.get("properties", {}).get("delivery_tag")
            except (ValueError, AttributeError):  # nothing is synced: a power cut leaves an empty file
                _log.warning("a message that cannot be read was dropped: %s", name)
                taken.unlink()
                continue
            if tag is None or queue in self._forgetful:
                taken.unlink()
            else:
                self._in_hand[tag] = taken
            return payload
        raise Empty

    def _look(self, queue: str) -> deque[str]:
        """List the messages in the folder, oldest first, after those that dead readers had taken are put back."""
        try:
            with os.scandir(self.data_folder_in) as entries:
                there = [entry.name for entry in entries]
        except FileNotFoundError:
            there = []  # the folder is away: a worker that took this for an error ended itself
        there += self._return_messages([name for name in there if name.endswith(_TAKEN)])
        listed = self._listed[queue] = deque(sorted(name for name in there if _is_of(name, queue)))
        return listed

    def _living(self) -> str:
        """Return this reader's name, which the names of messages in its hand contain; take its lock."""
        if self._alive is None:
            self._alive = _lock_of(self.control_folder, self._reader).open("wb")
            fcntl.flock(self._alive, fcntl.LOCK_EX)
        return self._reader

    def _return_messages(self, taken: list[str]) -> list[str]:
        """Give back what dead readers had in hand; the names of it."""
        by_reader: dict[str, list[str]] = {}
        for name in taken:
            by_reader.setdefault(_reader_of(name), []).append(name)
        by_reader.pop(self._reader, None)
        back: list[str] = []
        for reader, names in by_reader.items():
            if reader and not _lives(_lock_of(self.control_folder, reader)):
                back += [name for file_name in names if (name := _give_back(Path(self.data_folder_in) / file_name))]
        return back

    def basic_consume(self, queue: str, no_ack: bool, *args: Any, **kwargs: Any) -> None:  # noqa: FBT001 - kombu's
        """Consume; without acknowledgements a message that was taken is gone."""
        if no_ack:
            self._forgetful.add(queue)
        super().basic_consume(queue, no_ack, *args, **kwargs)

    def basic_get(self, queue: str, no_ack: bool = False, **kwargs: Any) -> Any:  # noqa: FBT001, FBT002 - kombu's
        """Take one message."""
        message = super().basic_get(queue, no_ack, **kwargs)
        if no_ack and message is not None:
            self._done(message.delivery_tag)
        return message

    def basic_ack(self, delivery_tag: str, multiple: bool = False) -> None:  # noqa: FBT001, FBT002 - kombu's
        """Remove a message that has arrived."""
        super().basic_ack(delivery_tag, multiple)
        self._done(delivery_tag)

    def basic_reject(self, delivery_tag: str, requeue: bool = False) -> None:  # noqa: FBT001, FBT002 - kombu's
        """Remove a message that is not wanted, or let others take it."""
        super().basic_reject(delivery_tag, requeue)
        self._done(delivery_tag)

    def _restore(self, message: Any) -> None:
        taken = self._in_hand.pop(message.delivery_tag, None)
        if taken is not None:
            _give_back(taken)

    def _done(self, tag: str | None) -> None:
        taken = self._in_hand.pop(tag or "", None)
        if taken is not None:
            taken.unlink(missing_ok=True)

    def close(self) -> None:
        """Close, and give back what was not acknowledged."""
        super().close()
        for tag in list(self._in_hand):
            _give_back(self._in_hand.pop(tag))
        if self._alive is not None:
            Path(self._alive.name).unlink(missing_ok=True)
            self._alive.close()
            self._alive = None

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        binding = [routing_key or "", pattern or "", queue or ""]
        with self._bindings(exchange) as bindings:
            if binding not in bindings:
                bindings.insert(0, binding)

    def _delete(self, queue: str, exchange: str, routing_key: str, pattern: str, *_: Any, **__: Any) -> None:
        self._purge(queue)
        with self._bindings(exchange) as bindings:
            bindings[:] = [
                binding for binding in bindings if binding != [routing_key or "", pattern or "", queue or ""]
            ]

    @contextlib.contextmanager
    def _bindings(self, exchange: str) -> Iterator[list[list[str]]]:
        """Lock the table of an exchange and yield it to be changed, so that no other process changes it meanwhile."""
        table = Path(self._exchange_file(exchange))
        with table.with_name(f".{table.name}.lock").open("wb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            before = [list(binding) for binding in self.get_table(exchange)]
            after = [list(binding) for binding in before]
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


def _lock_of(folder: Path, reader: str) -> Path:
    return folder / f".{reader}{_OWNER}"


def _reader_of(taken: str) -> str:
    """Whose hand a message is in; "": the release before named none."""
    reader = taken.removesuffix(_TAKEN).rpartition(".")[2]
    return "" if reader == "msg" else reader


def _give_back(taken: Path) -> str | None:
    """Put a message back, for anybody; return its name, or None if it was acknowledged or given back meanwhile."""
    name = taken.name.removesuffix(_TAKEN)[1:].rpartition(".")[0]
    try:
        taken.rename(taken.with_name(name))
    except FileNotFoundError:
        return None
    return name


def _lives(lock: Path) -> bool:
    """Its process holds the lock; the kernel lets go of it with the process, however that ends."""
    try:
        with lock.open("rb") as held:
            fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def _drop_left(messages: Path, control: Path) -> None:
    too_old = time.time() - LEFT_SECONDS
    for path in (*messages.glob(".*"), *control.glob(f".*{_OWNER}")):
        if path.name.endswith(_TAKEN) and _reader_of(path.name):
            continue
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_mtime < too_old and not (path.name.endswith(_OWNER) and _lives(path)):
                path.unlink()
