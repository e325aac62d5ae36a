"""Server-sent events as an answer: of anything that a stream can be about (`service.process.stream_subjects`).

1. A client that accepts `text/event-stream` gets a stream; it holds no thread where the server hands its socket over
   (`service.process.event_streams`), else one of the few that long lists may hold.
2. `id` is the event's number: a client that reconnects with `Last-Event-ID` gets the events after it.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final

from flask import Response, request

from service.auth.caller import caller
from service.context import context
from service.problems.errors import Place, Problem
from service.process import event_streams, stream_writer
from service.process.stream_writer import TAKE_OVER, Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from wsgiref.types import StartResponse, WSGIEnvironment

    from service.context import Context
    from service.process.stream_subjects import Subject

STREAM: Final = "text/event-stream"
_NUMBER: Final = re.compile("[0-9]{1,9}")


def wants_stream() -> bool:
    """Return whether the request asks for a stream rather than a list."""
    return STREAM in request.accept_mimetypes.values()


def last_seen(after: int) -> int:
    """Return the number of the event after which a client wants to go on.

    Raises:
        Problem: `invalid-request`.
    """
    asked = request.headers.get("Last-Event-ID")
    if not asked:
        return after
    if _NUMBER.fullmatch(asked) is None:
        detail = "Last-Event-ID is the number of an event, as its `id` told it."
        place = Place(header="Last-Event-ID", code="invalid-header", detail=detail)
        raise Problem("invalid-request", detail, places=(place,))
    return max(after, int(asked))


def stream_events(subject: Subject, after: int, *, ended: bool) -> Response:
    """Answer with a stream of what happens to a subject after this number.

    Args:
        subject: Of which the caller was allowed to know.
        after: Number of the last event that the client has.
        ended: There is nothing more to tell.
    """
    shared = context()
    if ended and request.headers.get("Last-Event-ID"):  # a browser reconnects for ever unless it gets a 204
        return Response(status=204)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", "Vary": "Accept"}
    content_type = f"{STREAM}; charset=utf-8"
    if request.method == "HEAD":
        return Response(iter(()), 200, headers, content_type=content_type)
    if TAKE_OVER in request.environ:
        give_back = shared.streams.seats.demand()
        taker = _stream_of_caller(shared, subject, after, give_back)
        return _HandedOver(taker, headers, content_type)
    give_back = shared.lists.demand()
    taker = _stream_of_caller(shared, subject, after, give_back)
    answer = Response(_release_after(give_back, _stream(shared, taker)), 200, headers, content_type=content_type)
    answer.call_on_close(give_back)  # also where nothing of it was ever read
    return answer


def _stream_of_caller(shared: Context, subject: Subject, after: int, give_back: Callable[[], None]) -> Stream:
    asked = caller()
    return Stream(
        owner=shared.streams, subject=subject, after=after, give_back=give_back, key=asked.key, login=asked.login
    )


class _HandedOver(Response):
    """An answer of which the server writes the head; its socket is the stream's from then on."""

    def __init__(self, stream: Stream, headers: dict[str, str], content_type: str) -> None:
        super().__init__(iter(()), 200, headers, content_type=content_type)
        self._stream = stream

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        environ[TAKE_OVER](self._stream)
        return super().__call__(environ, start_response)


def _release_after(give_back: Callable[[], None], stream: Iterator[bytes]) -> Iterator[bytes]:
    try:
        yield from stream
    finally:
        give_back()


def _stream(shared: Context, stream: Stream) -> Iterator[bytes]:
    """Yield the stream from the thread that answers, for a server that keeps its sockets."""
    stop = time.monotonic() + stream_writer.LONGEST_SECONDS
    beat = time.monotonic() + stream_writer.BEAT_SECONDS
    yield event_streams.BEGIN
    seen = shared.hub.news(None, 0.0)
    while not shared.hub.stopping and time.monotonic() < stop:
        with shared.database.read() as transaction:
            if event_streams.shut_out(transaction, [stream]):
                return
            found = stream.subject.news(transaction, stream.after)
        stream.after = found.after
        if found.text:
            yield found.text
            beat = time.monotonic() + stream_writer.BEAT_SECONDS
        elif time.monotonic() > beat:
            yield stream_writer.BEAT
            beat = time.monotonic() + stream_writer.BEAT_SECONDS
        if found.over:
            return
        if not found.more:
            seen = shared.hub.news(seen, stream_writer.BEAT_SECONDS)
