"""The record of a run as one file, and a file as a run: what `backprobe run --save` writes and `backprobe show` reads.

1. A record is decoded whole to be written or stored, so only few are processed at once. Further requests are refused
   with a Retry-After.
2. A file that is sent may be anybody's. It is decoded under caps before anything is stored, and judged by a worker, not
   here: rules over a stranger's record take their time.
"""

from __future__ import annotations

import hashlib
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from flask import Response, g, request
from pydantic import Field

from backprobe.record import MAGIC, BadRecord, FrameReader, dumps
from service.api.access.projects import place_of_caller
from service.api.records.record import NoQuery
from service.api.runs.run_json import require_record, run_json, run_of
from service.auth.caller import caller
from service.context import context
from service.openapi.document import ONCE, STORING, Answer, Operations, answers
from service.problems.errors import Place, Problem
from service.schemas.requests import ProjectId
from service.schemas.responses.runs import RunTold
from service.web.body import Strict, query
from service.web.content import check_encoding
from service.web.filters import WithLabels
from service.web.idempotency import storing
from service.web.reply import cache_headers, json_reply, not_modified
from store.access import idempotency
from store.findings import rejudging
from store.recorders import record_uploads
from store.records import storage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backprobe.record import Record
    from service.web.idempotency import Effect
    from store.runs.model import RunRow

blueprint = Operations("record_file", __name__, tag="What the run saw")

MEDIA: Final = "application/vnd.backprobe.record"
MOST_BYTES: Final = 64 << 20
"""Of a file that is sent."""

MOST_ROWS: Final = 2_000_000
MOST_WEIGHT: Final = 256 << 20
"""Bytes of memory that the rows of one that is sent may take."""

PIECE_BYTES: Final = 256 << 10
_BYTES: Final = {MEDIA: {"schema": {"type": "string", "contentMediaType": MEDIA}}}


@blueprint.get("/v1/runs/<run>/record")
@query(NoQuery)
@answers(
    {
        200: Answer(text="The file.", media=_BYTES, headers=("ETag", "Content-Disposition", "Accept-Ranges")),
        206: Answer(text="The bytes that Range asked for.", media=_BYTES, headers=("ETag", "Content-Range")),
        304: Answer(text="Not changed since."),
    },
    problems=("run-not-ended", "record-expired", "no-such-range", "stale", "too-many-streams"),
    headers=("If-None-Match", "Range"),
)
def get_record(run: str) -> Response:
    """The record of an ended run as the file that `backprobe show` and `backprobe.load` read, with no torch."""
    with context().records.seat():
        with context().database.read() as transaction:
            row = require_record(run_of(transaction, run))
            if not row.ended:
                raise Problem("run-not-ended", f"Run {row.id} is {row.status}.")
            if same := not_modified(row):
                return same
            found = None if row.key is None else storage.load(transaction, row.key)
        if found is None:
            raise Problem("not-found", f"Run {row.id} has no record: its program ended before anything was recorded.")
    return _send_file(row, dumps(found))


def _send_file(row: RunRow, file: bytes) -> Response:
    """Send the file, or the part of it that was asked for; the server keeps it on disk for a slow client.

    Raises:
        RequestedRangeNotSatisfiable: it does not have those bytes.
        Problem: `stale`: If-Match names another state.
    """
    told = cache_headers(row) | {"Content-Disposition": f"attachment; filename={row.id}.bprec"}
    answer = Response(file, 200, told, mimetype=MEDIA)
    answer.make_conditional(request, accept_ranges=True, complete_length=len(file))
    if answer.status_code == HTTPStatus.PRECONDITION_FAILED:
        detail = f"The record of run {row.id} is not as If-Match says."
        raise Problem("stale", detail, places=(Place(header="If-Match", code="stale", detail=detail),))
    return answer


class RecordAsked(Strict):
    """Where the record is to go."""

    project: ProjectId | None = Field(default=None, description="Default: the only one of the key, or the first.")
    labels: WithLabels = Field(default_factory=dict)


@blueprint.post("/v1/records")
@query(RecordAsked)
@answers(
    {202: Answer(text="Stored as a run; its findings come within seconds.", model=RunTold, headers=("Location",))},
    problems=(
        "bad-record", "too-large", "unsupported-media-type", "foreign-origin", "malformed-request", "not-found",
        "too-many-streams", *STORING, *ONCE,
    ),
    headers=("Idempotency-Key",),
    scope="runs:write",
    rate="submits",
    takes=_BYTES,
)  # fmt: skip
def upload_record(query: RecordAsked) -> Response:
    """Store a record that was made elsewhere as a new run, with `origin` uploaded, judged by the current rules.

    The body is a file of at most 67,108,864 bytes that `backprobe run --save` or `GET /v1/runs/{run}/record` wrote.
    """
    check_encoding()
    if request.mimetype != MEDIA:
        raise Problem("unsupported-media-type", f"The body's type is {request.content_type or 'not given'!r:.100}.",
                      hint=f"Send `Content-Type: {MEDIA}`.")  # fmt: skip
    with context().records.seat():
        sent = _read()
        with storing() as write:
            place = None
            if write.known is None:
                place = place_of_caller(write.transaction, query.project)
        run = (
            str(write.known and write.known.run)
            if place is None
            else _store_record(write, sent, place.number, query.labels)
        )
    with context().database.read() as transaction:
        row = run_of(transaction, run)
    return json_reply(run_json(row), 202, {"Location": f"/v1/runs/{row.id}", **write.headers})


def _read() -> Record:
    """Read the record from the body, decoded piece by piece as it comes.

    Raises:
        Problem: `bad-record`, `malformed-request`.
    """
    request.max_content_length = MOST_BYTES
    if request.stream.read(len(MAGIC)) != MAGIC:
        raise _bad(BadRecord("no-magic", "its first bytes are not those of a record"))
    reader, digest = FrameReader(MOST_BYTES, MOST_ROWS, max_weight=MOST_WEIGHT), hashlib.sha256()
    try:
        while piece := request.stream.read(PIECE_BYTES):
            digest.update(piece)
            reader.feed(piece)
        found = reader.record()
    except BadRecord as error:
        raise _bad(error) from None
    if found is None:
        raise _bad(BadRecord("no-header", "it has no header"))
    g.body_sha256 = digest.digest()
    return found


def _bad(error: BadRecord) -> Problem:
    place = Place(pointer="#", code=error.code, detail=f"{error}.")
    return Problem("bad-record", place.detail, places=(place,))


def _store_record(write: Effect, sent: Record, project: int, labels: Mapping[str, str]) -> str:
    """Store the record under a begun idempotency key, in separate transactions, and return the run's id."""
    asked, database = caller(), context().database
    try:
        row = record_uploads.upload(
            database,
            sent,
            None,
            tenant_id=asked.tenant_id,
            project_id=project,
            created_by=asked.actor,
            labels=labels,
        )
        with database.begin() as write.transaction:
            rejudging.ask(write.transaction, row.id, tenant_id=asked.tenant_id)
            write.done("record.upload", row.id, run=row.id)
    except BaseException as error:
        if write.key is not None:
            with database.begin() as transaction:
                idempotency.free(transaction, write.key, tenant_id=asked.tenant_id)
        if isinstance(error, BadRecord):
            raise _bad(error) from None
        raise
    return row.id
