"""Connections of waitress as we want them: its errors are problem+json too, and a socket may be handed over.

    view -> `Stream` -> head of the answer, written as any other -> the connection would be closed: the stream gets the
    socket, and waitress forgets it

1. What waitress finds wrong (a malformed request, a header too large) is answered in the one shape.
2. A socket is handed over by the loop, at the one point where waitress has written everything and would close it: no
   thread of waitress uses it any more, and nothing that was asked before is unanswered.
3. When connections are as good as used up, the one that was silent the longest makes room for a new one.
"""

from __future__ import annotations

import contextlib
import heapq
import json
import secrets
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from waitress.channel import HTTPChannel
from waitress.task import ErrorTask, WSGITask

from service.auth.guard import INERT
from service.limits import request_bodies, turns
from service.problems.catalogue import BY_STATUS, KINDS
from service.process.stream_writer import TAKE_OVER
from service.server import connection_loop

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    from service.process.stream_writer import Stream

_KEPT_FREE: Final = 16
"""Connections, for those that come before the ones that make room have been closed."""


class _ProblemTask(ErrorTask):
    """An error that waitress finds before the application sees the request."""

    def execute(self) -> None:
        found: Any = self.request.error  # type: ignore[attr-defined] waitress sets it on a bad request
        status = int(found.code)
        code = getattr(found, "problem", None) or BY_STATUS.get(status)
        kind = KINDS[code or ("malformed-request" if status < 500 else "internal-error")]
        request_id = f"req_{secrets.token_hex(8)}"
        body = json.dumps(
            {
                "type": f"/problems/{kind.code}",
                "title": kind.title,
                "status": status,
                "detail": _detail(found, status, request_id),
                "code": kind.code,
                "hint": kind.hint,
                "instance": "",
                "request_id": request_id,
                "errors": [],
            }
        ).encode()
        if isinstance(found, request_bodies.NoRoom | turns.HeldTooLong):
            self.response_headers = [*self.response_headers, ("Retry-After", str(request_bodies.RETRY_SECONDS))]
        self.status = f"{status} {found.reason}"
        self.response_headers = [
            *self.response_headers,
            ("Content-Type", "application/problem+json"),
            ("Content-Length", str(len(body))),
            ("X-Request-Id", request_id),
            ("Cache-Control", "no-store"),
            *INERT.items(),
            ("Connection", "close"),
        ]
        self.set_close_on_finish()
        self.content_length = len(body)
        self.write(body)


def _detail(found: Any, status: int, request_id: str) -> str:
    """Say what happened. Of a request that was refused for lack of room or time: that nothing of it was done."""
    if status < HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.NOT_IMPLEMENTED:
        return f"{found.reason}."
    if isinstance(found, request_bodies.NoRoom | turns.HeldTooLong):
        return f"Request {request_id} was not begun: {found.body}."
    return f"Request {request_id} failed on our side."


class _Task(WSGITask):
    """One request; its view may ask for the socket, which is then handed over behind the answer's head."""

    _taker: Stream | None = None

    def get_environment(self) -> dict[str, Any]:
        """Return the WSGI environment, with the function that takes over the socket."""
        environ = super().get_environment()
        environ[TAKE_OVER] = self._promise
        return environ

    def _promise(self, taker: Stream) -> None:
        self._taker = taker

    def service(self) -> None:
        """Answer; whoever was promised the socket and does not get it is dropped."""
        try:
            super().service()
        finally:
            if self._taker is not None:
                self._taker.drop()

    def finish(self) -> None:
        """End the answer, or hand over where its body begins."""
        if self._taker is None:
            super().finish()
            return
        self.write(b"")
        self.set_close_on_finish()
        channel: Any = self.channel
        channel.taker, self._taker = (self._taker, self.chunked_response), None


class Channel(HTTPChannel):
    """One connection."""

    task_class = _Task
    error_task_class = _ProblemTask

    waits = False
    """Its request waits for a thread (`service.limits.turns`)."""

    taker: tuple[Stream, bool] | None = None
    """Who gets the socket when all has been written and it would be closed, and whether the answer is in chunks."""

    def __init__(self, server: Any, sock: socket.socket, addr: Any, adj: Any, map: Any = None) -> None:  # noqa: A002 - waitress's word
        super().__init__(server, sock, addr, adj, map)
        beyond = len(server._map) - (adj.connection_limit - _KEPT_FREE)  # noqa: SLF001 - what waitress counts
        if beyond > 0:
            _make_room(
                [active_channel for active_channel in server.active_channels.values() if active_channel is not self],
                beyond,
            )

    def handle_close(self) -> None:
        """Close the connection. A socket that was promised to a stream goes on as a duplicate unknown to waitress."""
        if self.taker is not None and self.connected and self.socket is not None and not self.total_outbufs_len:
            with contextlib.suppress(OSError):  # no file is left: it is dropped below
                copy = self.socket.dup()
                taker, chunked = self.taker
                try:
                    taker.begin(copy, chunked=chunked)
                except OSError:
                    copy.close()
                    raise
                self.taker = None
        super().handle_close()

    def _flush_outbufs_below_high_watermark(self) -> None:
        """Wait, where a client has much to read; meanwhile its tenant's other requests may be at work."""
        if self.total_outbufs_len > self.adj.outbuf_high_watermark:
            with turns.aside():
                HTTPChannel._flush_outbufs_below_high_watermark(self)  # type: ignore[attr-defined]  # noqa: SLF001 - not in typeshed

    def del_channel(self, map: Any = None) -> None:  # noqa: A002 - waitress's word
        """However the connection ends: drop a body of which the rest will not come, which waitress would not."""
        if (unread := self.request) is not None:
            self.request = None
            unread.close()
        self._drop()
        super().del_channel(map)

    def service(self) -> None:
        """Answer one request; the loop may have closed the connection before its socket was promised."""
        connection_loop.ask(self)  # while it waited for a thread, nothing of it changed
        super().service()
        connection_loop.ask(self)  # it may have written what the next request on it waits for
        if not self.connected:
            self._drop()

    def _drop(self) -> None:
        if self.taker is not None:
            (taker, _), self.taker = self.taker, None
            taker.drop()


def _make_room(others: Sequence[HTTPChannel], wanted: int) -> None:
    """Have so many connections closed, those included that will be already; none that is at work."""
    wanted -= sum(other.will_close for other in others)
    idle = [other for other in others if not (other.will_close or other.requests or other.total_outbufs_len)]
    for other in heapq.nsmallest(wanted, idle, key=lambda other: other.last_activity):
        other.will_close = True
        connection_loop.ask(other)
