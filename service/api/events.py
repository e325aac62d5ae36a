"""What happens to a run: as server-sent events while it happens, or as a list.

1. A stream is for who asks for `text/event-stream`; it holds a thread, so only a quarter of them may stream.
2. `id` is the event's number: a client that comes back with `Last-Event-ID` misses none and gets none twice.
3. Between two events no transaction is open; a stream ends after ten minutes, and its client comes back by itself.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from apiflask import APIBlueprint
from flask import Response, request
from pydantic import Field

from service.api.body import query
from service.api.parameters import Page, Whole
from service.api.reply import after_of, page_reply
from service.api.run_json import run_of
from service.context import context
from service.errors import Place, Problem
from service.openapi import Answer, answers
from service.told.runs import EventList
from store import queries, runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from service.context import Context
    from store.run import RunRow

blueprint = APIBlueprint("events", __name__, tag="Runs")

BEAT_SECONDS: Final = 15.0
"""After so long without an event a comment is sent: proxies keep the line, and a client that has gone is noticed."""

LONGEST_SECONDS: Final = 600.0
RETRY_SECONDS: Final = 5
_STREAM: Final = "text/event-stream"
_BATCH: Final = 100
_NUMBER: Final = re.compile("[0-9]{1,9}")
_encoder: Final = msgspec.json.Encoder()


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
    return page_reply(listing, query, [_told(row, event) for event in shown], following)


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


def _told(run: RunRow, event: queries.EventRow) -> dict[str, Any]:
    return {
        "run": run.id,
        "seq": event.seq,
        "kind": event.kind,
        "at": event.at,
        "attempt": event.attempt,
        "detail": queries.as_json(event.payload),
    }


def _streamed(shared: Context, run: RunRow, after: int, *, ended: bool) -> Response:
    if ended and request.headers.get("Last-Event-ID"):  # a browser comes back for ever unless it is told 204
        return Response(status=204)
    give_back = shared.streams.take()
    if give_back is None:
        detail = f"{shared.streams.most} streams are open, and no more are served at once."
        raise Problem("too-many-streams", detail, headers={"Retry-After": str(RETRY_SECONDS)})
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", "Vary": "Accept"}
    answer = Response(
        _held(give_back, _stream(shared, run, after)), 200, headers, content_type=f"{_STREAM}; charset=utf-8"
    )
    answer.call_on_close(give_back)  # also where nothing of it was ever read
    return answer


def _held(give_back: Callable[[], None], stream: Iterator[bytes]) -> Iterator[bytes]:
    try:
        yield from stream
    finally:
        give_back()


def _stream(shared: Context, run: RunRow, after: int) -> Iterator[bytes]:
    stop = time.monotonic() + LONGEST_SECONDS
    beat = time.monotonic() + BEAT_SECONDS
    yield b"retry: 1000\n\n"
    news = shared.hub.news(None, 0.0)
    while not shared.hub.stopping and time.monotonic() < stop:
        with shared.database.read() as transaction:
            now = runs.get(transaction, run.id, tenant_id=run.tenant_id)
            found = queries.events(transaction, run, after=after, limit=_BATCH)
        for event in found:
            after = event.seq
            yield b"id: %d\nevent: %b\ndata: %b\n\n" % (
                event.seq,
                event.kind.encode(),
                _encoder.encode(_told(run, event)),
            )
        if len(found) == _BATCH:
            continue
        if now is None or now.ended:
            status = None if now is None else now.status
            yield b"event: end\ndata: %b\n\n" % _encoder.encode({"run": run.id, "status": status})
            return
        if found:
            beat = time.monotonic() + BEAT_SECONDS
        elif time.monotonic() > beat:
            beat = time.monotonic() + BEAT_SECONDS
            yield b": still here\n\n"
        news = shared.hub.news(news, BEAT_SECONDS)
