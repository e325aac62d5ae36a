"""The loop over connections by epoll: those that are silent, however many, cost the others nothing.

    waitress: before each wait every connection is asked whether it would read or write: 2,000 idle ones, 6 ms an answer
    here:     before each wait those are asked to which something happened; the kernel keeps what the others want

1. A connection is quiet when it has no request but one that waits for a thread, no answer to send and no end before it:
   it wants what it wanted before.
2. One that is not quiet is asked before each wait: what other threads change, they change at a connection whose request
   they have in hand. Whoever changes a quiet one says so by `ask`.
3. A file leaves epoll before it is closed: a copy of its socket, made for a stream, would keep it there for ever.
"""

from __future__ import annotations

import select
from typing import Any, Final

from waitress import wasyncore
from waitress.channel import HTTPChannel

HAS_EPOLL: Final = hasattr(select, "epoll")
"""Linux; elsewhere waitress's own loop serves."""

MOST_ACCEPTED: Final = 32
"""Connections that are taken in one turn, besides the first."""


class Watched(dict[int, Any]):
    """Listening socket, trigger and connections by file, as waitress keeps them in its map."""

    def __init__(self) -> None:
        super().__init__()
        self._epoll = select.epoll()
        self._wanted: dict[int, int] = {}
        """Events that epoll waits for, by file; one that wants none is not there."""
        self._to_ask: set[int] = set()

    def __setitem__(self, file: int, watched: Any) -> None:
        super().__setitem__(file, watched)
        self._to_ask.add(file)

    def __delitem__(self, file: int) -> None:
        super().__delitem__(file)
        self._to_ask.discard(file)
        if self._wanted.pop(file, 0):
            self._epoll.unregister(file)

    def ask(self, file: int) -> None:
        """Ask this one what it wants before the next wait."""
        self._to_ask.add(file)

    def run(self, seconds: float) -> None:
        """Serve until nothing is left; each wait takes at most so long."""
        try:
            while self:
                self._turn(seconds)
        finally:
            self._epoll.close()

    def _turn(self, seconds: float) -> None:
        for file in list(self._to_ask):
            self._to_ask.discard(file)  # first, so that a later request for this file is kept
            if (watched := self.get(file)) is None:
                continue
            if not is_quiet(watched):
                self._to_ask.add(file)
            self._want(file, watched)
        for file, events in self._epoll.poll(seconds):
            if (watched := self.get(file)) is not None:
                self._to_ask.add(file)
                wasyncore.readwrite(watched, events)  # epoll's events have poll's numbers
                if watched.accepting:
                    self._accept_more(watched)

    def _accept_more(self, listening: Any) -> None:
        """Those that came at once: one a turn, the last of a thousand waited for a thousand turns."""
        for _ in range(MOST_ACCEPTED):
            before = len(self)
            if not listening.readable():
                return
            listening.handle_accept()
            if len(self) == before:
                return

    def _want(self, file: int, watched: Any) -> None:
        wanted = select.EPOLLIN | select.EPOLLPRI if watched.readable() else 0
        if watched.writable() and not watched.accepting:
            wanted |= select.EPOLLOUT
        before = self._wanted.get(file, 0)
        if wanted == before or file not in self:
            return
        if not wanted:
            del self._wanted[file]
            self._epoll.unregister(file)
            return
        (self._epoll.modify if before else self._epoll.register)(file, wanted)
        self._wanted[file] = wanted


def ask(connection: HTTPChannel) -> None:
    """Something of it has changed; whichever thread did that."""
    where: Any = connection  # typeshed lacks what waitress sets
    if isinstance(where._map, Watched) and where._fileno is not None:  # noqa: SLF001 - no public name
        where._map.ask(where._fileno)  # noqa: SLF001


def is_quiet(watched: Any) -> bool:
    """Return whether nothing changes a connection meanwhile. Listening socket and trigger never count as quiet."""
    if not isinstance(watched, HTTPChannel):
        return False
    in_hand = watched.requests and not getattr(watched, "waits", False)
    return not (in_hand or watched.total_outbufs_len or watched.will_close or watched.close_when_flushed)
