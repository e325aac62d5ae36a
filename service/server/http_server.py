"""waitress with the connections of `service.server.connections`, in a separate thread.

A client that sends a request and does not read the answer is dropped: its thread would wait for ever.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import resource
import socket
import struct
import tempfile
import termios
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, Final

from waitress import wasyncore
from waitress.channel import HTTPChannel
from waitress.server import create_server

from service.api.audits.audit_lines import MOST_BYTES
from service.context import EXTENSION
from service.limits import request_bodies, turns
from service.limits.seats import share
from service.process.event_streams import MOST_STREAMS
from service.server import connection_loop
from service.server.connections import Channel

if TYPE_CHECKING:
    from flask import Flask

    from service.context import Context

MOST_HEADER_BYTES: Final = 16 << 10
_DRAINED_BODY_BYTES: Final = MOST_BYTES
"""Bodies up to here are read to their end, onto disk, and then refused if the address takes less, so that the client
hears why; beyond, waitress cuts off. An audit that comes as NDJSON is the largest that any address takes."""


MOST_CONNECTIONS: Final = 2000
"""Held open at once, most of them idle; waitress's own 100 let a hundred clients that say nothing stop the service for
everybody. When they are as good as taken, each new one makes room for itself: the one that was silent the longest, with
no request at work and nothing to read, is closed."""
SILENT_SECONDS: Final = 60
"""A connection on which nothing moves for so long is closed: one that asks nothing, or does not read its answer."""

_OWN_FILES: Final = 256
"""Of the files that the process may have open, those that are no connections: database, static files, logs."""


def connections() -> tuple[int, int]:
    """How many connections, and event streams besides, may be open, after asking the kernel for as many files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_CONNECTIONS + MOST_STREAMS + _OWN_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return MOST_CONNECTIONS, MOST_STREAMS
    streams = max(50, (soft - _OWN_FILES) // 3)
    return max(100, soft - _OWN_FILES - streams), streams


def settle() -> None:
    """Let the garbage collector pass over all that there is by now: modules, routes, schemas stay to the end anyway.

    Once in some hundred pages of tensors it went through all of it: 110 ms of CPU time, and that request was late.
    """
    gc.collect()
    gc.freeze()


def _count_unread_bytes(connection: socket.socket) -> int:
    """Bytes that the kernel has taken for a client and the client has not; 0 where the kernel does not say."""
    try:
        return struct.unpack("i", fcntl.ioctl(connection, termios.TIOCOUTQ, b"\0" * 4))[0]
    except OSError:
        return 0


def _folder_of_bodies() -> str | None:
    """Return the folder of temporary files; None if none can be written to, so that its file system is unknown."""
    try:
        return tempfile.gettempdir()
    except FileNotFoundError:
        return None


class Server:
    """One application on one listening socket, in a separate thread.

    Args:
        app: The WSGI application.
        listening: Bound; from `service.process.address.listen`.
        threads: That answer requests.
        silent_seconds: As `SILENT_SECONDS`.
        body_room: Bytes that the bodies of all requests may take together, if the disk has that room.

    Attributes:
        turns: Requests that wait for a thread.
    """

    def __init__(
        self,
        app: Flask,
        listening: socket.socket,
        threads: int,
        *,
        silent_seconds: int = SILENT_SECONDS,
        body_room: int = request_bodies.MOST_BYTES,
    ) -> None:
        shared: Context = app.extensions[EXTENSION]
        keyed = not shared.settings.is_open
        self.bodies = request_bodies.BodyRoom(shared.senders, body_room, keyed=keyed, folder=_folder_of_bodies())
        most, streams = connections()
        shared.streams.seats.most = streams
        # Typeshed's waitress lacks what is used here; `trigger`, `active_channels` and the map are in every release.
        self._watched = connection_loop.Watched() if connection_loop.HAS_EPOLL else {}
        self._server: Any = create_server(
            app,
            map=self._watched,
            sockets=[listening],
            threads=threads,
            ident="backprobe",
            max_request_header_size=MOST_HEADER_BYTES,
            max_request_body_size=_DRAINED_BODY_BYTES,
            inbuf_overflow=request_bodies.SMALL_BYTES,
            channel_timeout=silent_seconds,
            connection_limit=most,
            asyncore_use_poll=True,  # where there is no epoll; select() ends at file 1,024
            cleanup_interval=max(1, silent_seconds // 4),
            clear_untrusted_proxy_headers=True,
        )
        room = {"parser_class": staticmethod(self.bodies.parser)}
        self._server.channel_class = type("Channel", (Channel,), room)
        self.turns = turns.Turns(
            shared.senders,
            self._server.task_dispatcher,
            most=shared.settings.tenant_threads if keyed else threads,
            alone=share(threads) if keyed else threads,
        )
        shared.metrics.turns = self.turns
        self._count_unread_bytes: weakref.WeakKeyDictionary[HTTPChannel, tuple[int, float]] = (
            weakref.WeakKeyDictionary()
        )
        """Bytes that the kernel had for a client who seems not to read, and since when."""
        self._maintained = self._server.maintenance
        self._server.maintenance = self._maintain
        self._thread = threading.Thread(target=self._serve, name="server", daemon=True)

    def _serve(self) -> None:
        if isinstance(self._watched, connection_loop.Watched):
            self._watched.run(self._server.adj.asyncore_loop_timeout)
        else:
            self._server.run()

    def start(self) -> None:
        """Answer requests from now on."""
        self._thread.start()

    def stop(self, seconds: float = 10.0) -> None:
        """Take no new connection, finish the requests in hand for at most so many seconds, then end."""
        server, deadline = self._server, time.monotonic() + seconds
        # In the loop's thread, because a socket closed under select() breaks it; and not `server.close`, which closes
        # the trigger too.
        server.trigger.pull_trigger(lambda: wasyncore.dispatcher.close(server))
        while time.monotonic() < deadline and self._busy():
            time.sleep(0.02)
        self.turns.stop()
        server.task_dispatcher.shutdown(timeout=1)
        # A loop that is awake already may close all, the trigger too, before the trigger is pulled.
        with contextlib.suppress(OSError):
            server.trigger.pull_trigger(lambda: wasyncore.close_all(server._map, ignore_all=True))  # noqa: SLF001 - its only handle
        self._thread.join(2)

    def _maintain(self, now: float) -> None:
        """waitress closes the connections that ask nothing; the stuck ones, which do not read their answer, we do.

        To mark one as to be closed is not enough: the loop looks at it when its socket can be written to, so never.
        """
        self._maintained(now)
        before = now - self._server.adj.channel_timeout
        for channel in list(self._server.active_channels.values()):
            if channel.will_close:
                connection_loop.ask(channel)
            seems_stuck = channel.total_outbufs_len and channel.last_activity < before
            if seems_stuck and self._stands_still(channel, now) < before:
                self._server.trigger.pull_trigger(channel.handle_close)  # between two looks at the sockets

    def _stands_still(self, channel: HTTPChannel, now: float) -> float:
        """Since when the kernel has had the same bytes for this client.

        A socket takes more only when a third of what it holds has gone: to one who reads slowly that is a minute.
        """
        held = 0 if channel.socket is None else _count_unread_bytes(channel.socket)
        known = self._count_unread_bytes.get(channel)
        if known is None or known[0] != held:
            known = self._count_unread_bytes[channel] = held, now
        return known[1]

    def _busy(self) -> bool:
        dispatcher = self._server.task_dispatcher
        unsent = any(channel.total_outbufs_len for channel in list(self._server.active_channels.values()))
        return self.turns.waiting > 0 or dispatcher.active_count > 0 or unsent
