"""The sockets of event streams: one thread writes to them all, as each takes it.

1. It alone has the sockets, and it asks nobody: a client that does not read, or a database that is away, holds up none.
2. What waits for a client is bounded by who posts (`MOST_PENDING`), and one that takes nothing of it is let go of.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.process.stream_subjects import Subject

TAKE_OVER: Final = "backprobe.take_over"
"""Key of the WSGI environment of a server that hands its socket over: to be called with the `Stream` that takes it."""

BEAT_SECONDS: Final = 15.0
"""After so long without an event a comment is sent: proxies keep the line, and a client that has gone is noticed."""

LONGEST_SECONDS: Final = 600.0
STUCK_SECONDS: Final = 60.0
"""A client that takes nothing of what waits for it is let go of after so long."""

LATE_SECONDS: Final = 1.0
"""Between two looks for what has become late."""

BEAT: Final = b": still here\n\n"
_MOST_READ: Final = 16 << 10
"""Bytes that a client may send after its request, which mean nothing."""


class Owner(Protocol):
    """Whose streams they are."""

    def begin(self, stream: Stream) -> None:
        """Serve it from now on."""


@dataclass(slots=True, eq=False, kw_only=True)
class Stream:
    """The events of one run or audit for one client. A view makes the stream; the server begins or drops it.

    Attributes:
        after: Number of the last event that is on its way.
        give_back: Its seat.
        key, login: What its client was let in by (`service.auth.caller.Caller`); when that ends, the stream does.
        fed: Nothing more of its subject comes. last: Nothing more comes.
        connection: None: it has not begun, or has ended.
        pending: What waits for its client. moved: when the client last took something, or had nothing to take.
        read: Bytes that its client sent, which mean nothing.
    """

    owner: Owner
    subject: Subject
    after: int
    give_back: Callable[[], None]
    key: int | None = None
    login: str | None = None
    chunked: bool = False
    fed: bool = False
    last: bool = False
    connection: socket.socket | None = None
    pending: bytearray = field(default_factory=bytearray)
    stop: float = 0.0
    beat: float = 0.0
    moved: float = 0.0
    read: int = 0

    def begin(self, connection: socket.socket, *, chunked: bool) -> None:
        """Begin a stream on a socket whose head has been written. Its answer is in chunks (HTTP/1.1) or not."""
        self.connection, self.chunked = connection, chunked
        self.owner.begin(self)

    def drop(self) -> None:
        """Its client has gone before it began."""
        self.give_back()

    def say(self, text: bytes, *, last: bool = False) -> None:
        """Put this behind what waits for the client."""
        now = time.monotonic()
        if not self.pending:
            self.moved = now
        if text:
            self.beat = now + BEAT_SECONDS
            self.pending += b"%x\r\n%b\r\n" % (len(text), text) if self.chunked else text
        if last and not self.last:
            self.last = True
            self.pending += b"0\r\n\r\n" if self.chunked else b""


class Writer:
    """Write to all sockets, in a separate thread.

    Args:
        ended: Called with each stream that has ended.
    """

    def __init__(self, ended: Callable[[Stream], None]) -> None:
        self._ended = ended
        self._inbox: deque[tuple[Stream, bytes, bool]] = deque()
        self._bell, self._ring = socket.socketpair()
        for end in (self._bell, self._ring):
            end.setblocking(False)
        self._ready = selectors.DefaultSelector()
        self._ready.register(self._bell, selectors.EVENT_READ)
        self._serving: set[Stream] = set()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="streams-writer", daemon=True)
        self._thread.start()

    def post(self, stream: Stream, text: bytes, *, last: bool = False) -> None:
        """Write this to the stream's client, and then end, or not. From any thread."""
        self._inbox.append((stream, text, last))
        with contextlib.suppress(BlockingIOError):  # it rings already
            self._ring.send(b"\0")

    def close(self) -> None:
        """Write what can be written at once, and end all."""
        self._closed = True
        with contextlib.suppress(BlockingIOError):
            self._ring.send(b"\0")
        self._thread.join(5)

    def _serve(self) -> None:
        late = 0.0
        while not self._closed:
            for key, mask in self._ready.select(LATE_SECONDS if self._serving else None):
                if key.data is None:
                    self._take_news()
                else:
                    self._serve_stream(key.data, mask)
            if (now := time.monotonic()) > late:
                late = now + LATE_SECONDS
                for stream in tuple(self._serving):
                    self._late(stream, now)
        self._take_news()
        for stream in tuple(self._serving):
            stream.say(b"", last=True)
            self._write(stream)
            self._end(stream)
        self._ready.close()
        self._bell.close()
        self._ring.close()

    def _take_news(self) -> None:
        """Take what was posted."""
        with contextlib.suppress(BlockingIOError):
            self._bell.recv(4096)
        while self._inbox:
            stream, text, last = self._inbox.popleft()
            if stream.connection is None:
                continue
            if stream not in self._serving:
                self._serving.add(stream)
                self._ready.register(stream.connection, selectors.EVENT_READ, stream)
            stream.say(text, last=last)
            self._write(stream)

    def _serve_stream(self, stream: Stream, mask: int) -> None:
        if mask & selectors.EVENT_READ and stream.connection is not None:
            try:
                sent = stream.connection.recv(4096)
            except BlockingIOError:
                return
            except OSError:
                sent = b""
            stream.read += len(sent)
            if not sent or stream.read > _MOST_READ:
                self._end(stream)
        if mask & selectors.EVENT_WRITE:
            self._write(stream)

    def _late(self, stream: Stream, now: float) -> None:
        if stream.pending and now > stream.moved + STUCK_SECONDS:
            self._end(stream)
        elif now > stream.stop and not stream.last:
            stream.say(b"", last=True)
            self._write(stream)
        elif now > stream.beat and not stream.pending:
            stream.say(BEAT)
            self._write(stream)

    def _write(self, stream: Stream) -> None:
        """Write what its client takes now; the rest when it takes more."""
        if stream.connection is None:
            return
        try:
            sent = stream.connection.send(stream.pending) if stream.pending else 0
        except BlockingIOError:
            sent = 0
        except OSError:
            self._end(stream)
            return
        if sent:
            stream.moved = time.monotonic()
            del stream.pending[:sent]
        if stream.last and not stream.pending:
            self._end(stream)
            return
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if stream.pending else 0)
        if self._ready.get_key(stream.connection).events != wanted:
            self._ready.modify(stream.connection, wanted, stream)

    def _end(self, stream: Stream) -> None:
        connection, stream.connection = stream.connection, None
        if connection is not None:
            self._ready.unregister(connection)
            self._serving.discard(stream)
            self._ended(stream)  # before its client sees the end, and comes again
            connection.close()
