"""Streams of events that hold no thread: the server hands their sockets over, and two threads serve them all.

    view -> head of the answer -> the server writes it, and hands its socket over -> writer
    a run or audit has changed -> feeder: what is new of it, once for all its streams -> writer -> sockets that take it

1. The feeder alone asks the database, the writer alone has sockets: neither a client that does not read nor a database
   that is away holds up the others.
2. A stream is the last answer of its connection, which ends with it.
3. Between two events no transaction is open; a stream ends after ten minutes, and its client comes back by itself.
4. A new stream gets the existing events at once, by a separate look: it waits neither for the next look at all streams,
   which rests four times as long as it took, nor for what a look at a thousand others costs.
5. A stream ends within a second or two after its key was revoked or has expired, or its person has logged out.
6. Tenants take turns in each look. A look reads the events of at most `MOST_TOLD` runs; the rest follow in the next.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from service.limits.seats import Seats
from service.process import stream_writer
from store.access import keys, logins
from store.database.session import is_unavailable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from service.process.stream_subjects import News, Subject
    from service.process.stream_writer import Stream
    from store.database.session import Database, Transaction
    from store.runs.reading.wait import Hub

log = logging.getLogger("backprobe.service")

MOST_STREAMS: Final = 1000
MOST_PENDING: Final = 64 << 10
"""Bytes that wait for a client; a client with more pending gets no further events until it has read."""

LOOK_SECONDS: Final = 1.0
"""It looks so often without news, which may be lost."""

PAUSE_SECONDS: Final = 0.01
"""At least this long between two looks at all streams: news that arrives meanwhile is handled together."""

GATHER_SECONDS: Final = 0.01
"""After a look at those that begin: what begins meanwhile is looked at together."""

MOST_TOLD: Final = 64
"""Runs and audits of which one look reads what happened, each two or three statements."""

BEGIN: Final = b"retry: 1000\n\n"


class Streams:
    """All streams of one process. The threads start with the first, and rest while there is none.

    Attributes:
        seats: For streams.
    """

    def __init__(self, database: Database, hub: Hub) -> None:
        self.seats = Seats(MOST_STREAMS, "streams")
        self._database, self._hub = database, hub
        self._open: dict[Stream, None] = {}
        """Who was told something last stands at the end."""
        self._begun: list[Stream] = []
        self._changing = threading.Lock()
        self._wake, self._news = threading.Event(), threading.Event()
        self._closed = threading.Event()
        self._writer: stream_writer.Writer | None = None
        self._feeder = threading.Thread(target=self._feed, name="streams-feeder", daemon=True)

    def begin(self, stream: Stream) -> None:
        """Serve it from now on; its client has read nothing yet."""
        stream.stop = time.monotonic() + stream_writer.LONGEST_SECONDS
        with self._changing:
            if self._closed.is_set():
                stream.drop()
                return
            if self._writer is None:
                self._writer = stream_writer.Writer(self._end_stream)
                self._feeder.start()
            self._open[stream] = None
            self._begun.append(stream)
            self._writer.post(stream, BEGIN)
        self._wake.set()

    def close(self) -> None:
        """End all streams."""
        with self._changing:
            self._closed.set()
        self._wake.set()
        if self._writer is not None:
            self._feeder.join(5)
            self._writer.close()

    def _end_stream(self, stream: Stream) -> None:
        with self._changing:
            self._open.pop(stream, None)
        stream.give_back()

    def _list_unfed_streams(self) -> Sequence[Stream]:
        with self._changing:
            return [stream for stream in self._open if not stream.fed]

    def _take_new_streams(self) -> Sequence[Stream]:
        """Those that have begun since the last call."""
        with self._changing:
            begun, self._begun = self._begun, []
        return begun

    def _hear(self) -> None:
        self._news.set()
        self._wake.set()

    def _feed(self) -> None:
        while not self._closed.is_set():
            self._wake.wait()
            with self._hub.call_on_change(self._hear):
                self._while_open()

    def _while_open(self) -> None:
        """Look at those that begin, and at all when there is news or a second has passed, until all has been told."""
        earliest = latest = 0.0
        while not self._closed.is_set():
            self._wake.clear()
            now = time.monotonic()
            if begun := self._take_new_streams():
                self._closed.wait(GATHER_SECONDS if self._look(begun) else LOOK_SECONDS)
            elif now >= latest or (self._news.is_set() and now >= earliest):
                if not (streams := self._list_unfed_streams()):
                    return
                self._news.clear()
                looked = self._look(streams)
                over = time.monotonic()
                rest = max(PAUSE_SECONDS, 4 * (over - now)) if looked else LOOK_SECONDS
                earliest, latest = over + min(rest, LOOK_SECONDS), over + LOOK_SECONDS
            else:
                self._wake.wait((earliest if self._news.is_set() else latest) - now)

    def _look(self, streams: Sequence[Stream]) -> bool:
        """Tell each what it has not been told; that all is over, once nobody listens any more. False: not now."""
        if self._hub.stopping:
            for stream in streams:
                self._post(stream, b"", over=True)
            return True
        try:
            with self._database.read() as transaction:
                self._tell(transaction, streams)
        except Exception as error:  # the fence of this thread: a database that is away comes back
            if not is_unavailable(error):
                log.exception("streams could not be told what has happened")
            return False
        return True

    def _tell(self, transaction: Transaction, streams: Sequence[Stream]) -> None:
        shut = shut_out(transaction, streams)
        for stream in shut:
            self._post(stream, b"", over=True)
        streams = [stream for stream in streams if stream not in shut]
        of_kind: defaultdict[type[Subject], set[int]] = defaultdict(set)
        for stream in streams:
            of_kind[type(stream.subject)].add(stream.subject.number)
        standing = {kind: kind.standing(transaction, numbers) for kind, numbers in of_kind.items()}
        told: dict[tuple[type[Subject], int, int], News] = {}
        for stream in _in_turns(streams):
            kind, number = type(stream.subject), stream.subject.number
            last, ended = standing[kind].get(number, (0, True))
            if (last <= stream.after and not ended) or len(stream.pending) > MOST_PENDING:
                continue
            place = kind, number, stream.after
            if place not in told:
                if len(told) == MOST_TOLD:
                    self._news.set()
                    continue
                told[place] = stream.subject.news(transaction, stream.after)
            found = told[place]
            stream.after = found.after
            self._post(stream, found.text, over=found.over)
            if found.more:
                self._news.set()

    def _post(self, stream: Stream, text: bytes, *, over: bool) -> None:
        stream.fed = over
        with self._changing:
            if stream in self._open:
                del self._open[stream]
                self._open[stream] = None
        if self._writer is not None:
            self._writer.post(stream, text, last=over)


def shut_out(transaction: Transaction, streams: Sequence[Stream]) -> Collection[Stream]:
    """Those whose key opens nothing any more, or whose person has logged out."""
    numbers = {stream.key for stream in streams if stream.key is not None}
    known = {stream.login for stream in streams if stream.login is not None}
    live = keys.live_among(transaction, numbers) if numbers else frozenset[int]()
    ended = logins.ended_among(transaction, known) if known else frozenset[str]()
    return {
        stream
        for stream in streams
        if (stream.key is not None and stream.key not in live) or (stream.login is not None and stream.login in ended)
    }


def _in_turns(streams: Sequence[Stream]) -> Iterator[Stream]:
    """One of each tenant, then the second of each, and so on."""
    of_tenant: defaultdict[int, list[Stream]] = defaultdict(list)
    for stream in streams:
        of_tenant[stream.subject.tenant_id].append(stream)
    for row in zip_longest(*of_tenant.values()):
        yield from (stream for stream in row if stream is not None)
