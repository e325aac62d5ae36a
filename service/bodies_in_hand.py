"""What is in hand of all requests' bodies: they are read, onto disk, before anybody has asked who sends them.

1. A body up to 64 KiB is in memory and is not counted: it is what nearly every request has, and is always taken.
2. Beyond, all bodies together have so much room. The one that grows when it is full is refused, and may come again.
3. What a body took is given back when it was answered, or when its connection has gone.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from waitress.parser import HTTPRequestParser
from waitress.utilities import Error

if TYPE_CHECKING:
    from waitress.adjustments import Adjustments

MOST_BYTES: Final = 2 << 30
"""Of all bodies together, on the disk of temporary files: eight of the largest."""

SMALL_BYTES: Final = 64 << 10
"""Of a body that is kept in memory: 128 MiB, if every connection has one."""

RETRY_SECONDS: Final = 5


class NoRoom(Error):
    """There is no room for more of this body."""

    code = 503
    reason = "Service Unavailable"


class BodyRoom:
    """The room of one server.

    Args:
        most: Bytes of all bodies together.
    """

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._counting = threading.Lock()  # bodies are read by the loop, and given back by who has answered
        self.taken = 0

    def take(self, size: int) -> bool:
        """Whether there was room for so many bytes; then they are taken."""
        with self._counting:
            fits = self.taken + size <= self._most
            self.taken += size if fits else 0
        return fits

    def give_back(self, size: int) -> None:
        """So many bytes are in hand no more."""
        with self._counting:
            self.taken -= size

    def parser(self, settings: Adjustments) -> HTTPRequestParser:
        """Reads one request of this server."""
        return _Parser(settings, self)


class _Parser(HTTPRequestParser):
    def __init__(self, settings: Adjustments, room: BodyRoom) -> None:
        super().__init__(settings)
        self._room, self._taken = room, 0

    def received(self, data: bytes) -> int:
        """Read on, as far as there is room."""
        consumed = super().received(data)
        found: Any = self  # typeshed lacks what waitress sets
        grown = found.body_bytes_received - self._taken
        if grown > SMALL_BYTES and not found.error:
            if self._room.take(grown):
                self._taken += grown
            else:
                found.error, found.completed = NoRoom("no room"), True
        return consumed

    def close(self) -> None:
        """Drop the body."""
        super().close()
        self._room.give_back(self._taken)
        self._taken = 0
