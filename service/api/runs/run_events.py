"""What happens to a run: as server-sent events while it happens, or as a list.

`id` is the event's number: a client that comes back with `Last-Event-ID` misses none and gets none twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from service.api.runs.run_json import run_of
from service.context import context
from service.openapi.document import Answer, Operations, answers
from service.process.stream_subjects import RunSubject, told_event
from service.schemas.responses.runs import EventList
from service.web.body import query
from service.web.parameters import Page, Whole
from service.web.reply import page_reply, read_cursor
from service.web.streamed_events import STREAM, last_seen, stream_events, wants_stream
from store import queries

if TYPE_CHECKING:
    from flask import Response

blueprint = Operations("events", __name__, tag="Runs")


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
            media={STREAM: {"schema": {"type": "string"}}},
            headers=("Link",),
        ),
        204: Answer(text="The run has ended and Last-Event-ID was its last event: do not come back."),
    },
    problems=("too-many-streams",),
    headers=("Accept", "Last-Event-ID"),
)
def list_events(run: str, query: EventsQuery) -> Response:
    """What happened to a run, in order; as a stream while it happens."""
    with context().database.read() as transaction:
        row = run_of(transaction, run)
        listing = f"{row.id} events"
        cursor = read_cursor(listing, query)
        after = last_seen(cursor[0] if cursor else query.after)
        found = queries.events(transaction, row, after=after, limit=query.limit + 1)
    if wants_stream():
        return stream_events(RunSubject(row), after, ended=row.ended and not found)
    shown = found[: query.limit]
    following = [shown[-1].seq] if len(found) > query.limit else None
    return page_reply(listing, query, [told_event(row, event) for event in shown], following)
