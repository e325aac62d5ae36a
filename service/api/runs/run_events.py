"""What happens to a run: as server-sent events while it happens, or as a list.

1. A stream is for who asks for `text/event-stream`; it holds no thread where the server hands its socket over
   (`service.process.event_streams`), else one of the few that long lists may hold.
2. `id` is the event's number: a client that comes back with `Last-Event-ID` misses none and gets none twice.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Annotated, Final

from flask import Response, request
from pydantic import Field

from service.api.runs.run_json import run_of
from service.context import context
from service.openapi.document import Answer, Operations, answers
from service.problems.errors import Place, Problem
from service.process import event_streams, stream_writer
from service.process.event_streams import told_event
from service.process.stream_writer import TAKE_OVER, Stream
from service.schemas.responses.runs import EventList
from service.web.body import query
from service.web.parameters import Page, Whole
from service.web.reply import after_of, page_reply
from store import queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from wsgiref.types import StartResponse, WSGIEnvironment

    from service.context import Context
    from store.runs.model import RunRow

blueprint = Operations("events", __name__, tag="Runs")

_STREAM: Final = "text/event-stream"
_NUMBER: Final = re.compile("[0-9]{1,9}")


class EventsQuery(Page):
    """Which events."""

    after: Annotated[Whole, Field(ge=0, le=999_999_999)] = Field(
        default=0, description="Only those behind this number."
    )


@blueprint.get("/v1/runs/<run>/events")
@query(EventsQuery)
@answers(
    {
        200: Answer(
            text="A page of events; or, where Accept names text/event-stream, a stream of them: `id` is the event's "
            "number, `event` its kind, `data` its JSON; `event: end` is the last one.",
            model=EventList,
            media={_STREAM: {"schema": {"type": "string"}}},
            headers=("Link",),
        ),
        204: Answer(text="The run has ended and Last-Event-ID was its last event: do not come back."),
    },
    problems=("too-many-streams",),
    headers=("Accept", "Last-Event-ID"),
)
def list_events(run: str, query: EventsQuery) -> Response:
    """What happened to a run, in order; as a stream while it happens."""
    shared, streamed = context(), _STREAM in request.accept_mimetypes.values()
    with shared.database.read() as transaction:
        row = run_of(transaction, run)
        listing = f"{row.id} events"
        cursor = after_of(listing, query)
        after = _last_seen(cursor[0] if cursor else query.after)
        found = queries.events(transaction, row, after=after, limit=query.limit + 1)
    if streamed:
        return _streamed(shared, row, after, ended=row.ended and not found)
    shown = found[: query.limit]
    following = [shown[-1].seq] if len(found) > query.limit else None
    return page_reply(listing, query, [told_event(row, event) for event in shown], following)


def _last_seen(after: int) -> int:
    """The number behind which a client wants to go on.

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


def _streamed(shared: Context, run: RunRow, after: int, *, ended: bool) -> Response:
    if ended and request.headers.get("Last-Event-ID"):  # a browser comes back for ever unless it is told 204
        return Response(status=204)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", "Vary": "Accept"}
    content_type = f"{_STREAM}; charset=utf-8"
    if request.method == "HEAD":
        return Response(iter(()), 200, headers, content_type=content_type)
    if TAKE_OVER in request.environ:
        give_back = shared.streams.seats.demand()
        taker = Stream(owner=shared.streams, run=run, after=after, give_back=give_back)
        return _HandedOver(taker, headers, content_type)
    give_back = shared.lists.demand()
    answer = Response(_held(give_back, _stream(shared, run, after)), 200, headers, content_type=content_type)
    answer.call_on_close(give_back)  # also where nothing of it was ever read
    return answer


class _HandedOver(Response):
    """An answer of which the server writes the head; its socket is the stream's from then on."""

    def __init__(self, stream: Stream, headers: dict[str, str], content_type: str) -> None:
        super().__init__(iter(()), 200, headers, content_type=content_type)
        self._stream = stream

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        environ[TAKE_OVER](self._stream)
        return super().__call__(environ, start_response)


def _held(give_back: Callable[[], None], stream: Iterator[bytes]) -> Iterator[bytes]:
    try:
        yield from stream
    finally:
        give_back()


def _stream(shared: Context, run: RunRow, after: int) -> Iterator[bytes]:
    """The same for a server that keeps its sockets: in the thread that answers."""
    stop = time.monotonic() + stream_writer.LONGEST_SECONDS
    beat = time.monotonic() + stream_writer.BEAT_SECONDS
    yield event_streams.BEGIN
    seen = shared.hub.news(None, 0.0)
    while not shared.hub.stopping and time.monotonic() < stop:
        with shared.database.read() as transaction:
            found = event_streams.news(transaction, run, after)
        after = found.after
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
