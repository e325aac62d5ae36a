"""The progress of an audit: as server-sent events until it ends, or as its current state.

`id` is the audit's version. A client that reconnects with `Last-Event-ID` gets the current
state if the version changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from service.api.audits.audits import audit_of
from service.context import context
from service.openapi.document import Answer, Operations, answers
from service.process.stream_subjects import AuditSubject, told_progress
from service.schemas.responses.audits import AuditEventList
from service.web.body import Strict, query
from service.web.parameters import Whole
from service.web.reply import json_reply
from service.web.streamed_events import STREAM, last_seen, stream_events, wants_stream

if TYPE_CHECKING:
    from flask import Response

blueprint = Operations("audit_events", __name__, tag="Audits")


class AuditEventsQuery(Strict):
    """Which events."""

    after: Annotated[Whole, Field(ge=0, le=999_999_999)] = Field(default=0, description="Only one behind this number.")


@blueprint.get("/v1/audits/<audit>/events")
@query(AuditEventsQuery)
@answers(
    {
        200: Answer(
            text="How it stands, if that is new; or, where Accept names text/event-stream, a stream that tells it each "
            "time it has moved: `id` is the audit's version, `event` the kind, `data` its JSON; `event: end` is the "
            "last one.",
            model=AuditEventList,
            media={STREAM: {"schema": {"type": "string"}}},
        ),
        204: Answer(text="The audit has ended and Last-Event-ID was its last event: do not come back."),
    },
    problems=("too-many-streams",),
    headers=("Accept", "Last-Event-ID"),
)
def list_audit_events(audit: str, query: AuditEventsQuery) -> Response:
    """How far an audit is; as a stream while its programs end. Several that end together are one event."""
    with context().database.read() as transaction:
        found = audit_of(transaction, audit)
    after = last_seen(query.after)
    is_new = found.version > after
    if wants_stream():
        return stream_events(AuditSubject(found), after, ended=found.finished_at is not None and not is_new)
    return json_reply({"items": [told_progress(found)] if is_new else [], "next_cursor": None})
