"""A recorder in somebody's training job: it makes its run, sends the record frame by frame, and says how the job ended.

1. The id is the client's, so that a job starts with the service away. An id that another tenant has is answered by 404,
   like any read of it: that it is taken cannot be hidden from who holds it, but whose it is and what it is can.
2. Each of the three may be sent again when its answer was lost. A frame is decoded before it is kept, and once more,
   with all others, at the end: it may be anybody's.
3. The audit log has the beginning and the end; the row of each frame has the time at which it came.
"""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from flask import Response, request

from backprobe.record import MAGIC, BadRecord, frame_kind, split
from service.api.access.projects import place_of_caller
from service.api.records.record_file import MEDIA
from service.api.runs.run_json import run_json, run_of
from service.auth.caller import caller
from service.context import context
from service.limits import turns
from service.openapi.document import ONCE, STORING, Answer, Operations, answers
from service.problems.errors import Place, Problem
from service.schemas.job_requests import JobEnded, RecorderAsked
from service.schemas.responses.runs import RunTold
from service.web.body import body
from service.web.content import check_encoding
from service.web.idempotency import Effect, effect, storing, within_quotas
from service.web.reply import json_reply
from store.database.ids import is_id
from store.recorders import ending as recorder_end
from store.recorders import jobs, recorder_requests, recorders

if TYPE_CHECKING:
    from collections.abc import Generator

blueprint = Operations("recorders", __name__, tag="Runs")

RETRY_SECONDS: Final = 2
MOST_REQUEST_BYTES: Final = 4 << 20
MOST_FRAMES_AT_ONCE: Final = 2000
"""In one request: 30 steps of a job are some 500 frames."""

_BYTES: Final = {MEDIA: {"schema": {"type": "string", "contentMediaType": MEDIA}}}


@contextmanager
def _refusals(run: str) -> Generator[None]:
    """Convert what the store refuses to problems."""
    try:
        yield
    except recorder_requests.Unknown:
        raise Problem("not-found", f"There is no run {run[:40]}.") from None
    except recorder_requests.RunEnded as error:
        raise Problem("run-ended", _sentence(error)) from None
    except recorder_requests.TimeRefused as error:
        place = Place(parameter="run", code="id-time-refused", detail=_sentence(error))
        raise Problem("id-time-refused", place.detail, places=(place,)) from None
    except recorder_requests.Missing as error:
        raise Problem("frame-missing", _sentence(error), headers={"Next-Frame": str(error.wanted)}) from None
    except recorder_requests.TooLarge as error:
        hint = "Nothing of this frame was stored. Record less: fewer steps, or a lower tier; and end the run."
        raise Problem("too-large", _sentence(error), hint=hint) from None
    except recorder_requests.Misplaced as error:
        raise _bad(error.code, error) from None


def _sentence(error: Exception) -> str:
    said = str(error)
    return f"{said[0].upper()}{said[1:]}."


def _bad(code: str, error: Exception) -> Problem:
    place = Place(pointer="#", code=code, detail=_sentence(error))
    hint = "Send frames of `backprobe.record`, each with its length before it, as `backprobe.record.split` cuts them."
    return Problem("bad-record", place.detail, places=(place,), hint=hint)


def _check_id(run: str) -> None:
    if not is_id("run", run):
        detail = "The id of a run is run_ and a UUIDv7 in Crockford's base32, 26 characters."
        raise Problem("invalid-request", detail, places=(Place(parameter="run", code="not-an-id", detail=detail),))


def _count_job(run: str, asked: RecorderAsked) -> None:
    """Count a job as one submit, however many ranks it has; that each is a read has been counted.

    Raises:
        Problem: `rate-limited`.
    """
    asking = caller()
    with context().database.read() as reading:
        place = place_of_caller(reading, asked.project)
        joins = jobs.joins(reading, run, asked.labels, tenant_id=asking.tenant_id, project_id=place.number)
    if not joins:
        context().rates.check(asking, "submits")


@blueprint.put("/v1/runs/<run>")
@body(RecorderAsked)
@answers(
    {
        201: Answer(text="Made; frames may be sent.", model=RunTold, headers=("Location",)),
        200: Answer(text="The same request had made it.", model=RunTold, headers=("Location",)),
    },
    problems=("run-ended", "run-differs", "id-time-refused", *STORING),
    scope="runs:write",
)
def begin_run(run: str, body: RecorderAsked) -> Response:
    """Make the run of a recorder, under an id of the client's own, whose time is near the server's.

    Ids are taken from one day ahead back to the oldest month whose records are kept. The answer to an id that somebody
    else has is 404. What has come is shown within seconds (`record.live`), and judged at the end. A run that is
    silent for too long (24 hours, unless the operator says otherwise) ends as lost, and what had come is its record.

    It counts as a submit, and a job of several ranks as one: a rank that joins its group counts as a read.
    """
    _check_id(run)
    asking = caller()
    _count_job(run, body)
    with _refusals(run), storing() as write:
        place = place_of_caller(write.transaction, body.project)
        told = body.model_dump_json().encode()
        asked = recorder_requests.Recording(
            public_id=run,
            asked=hashlib.sha256(told).digest(),
            capture=body.capture.model_dump(),
            environment=body.environment,
            labels=body.labels,
            created_by=asking.actor,
            tenant_id=asking.tenant_id,
            project_id=place.number,
            sees_project=asking.project_id,
            lease_seconds=context().settings.recorder_lease_seconds,
        )
        try:
            made = recorders.begin(write.transaction, asked)
        except recorder_requests.Differs as error:
            raise Problem("run-differs", _sentence(error)) from None
        if made or write.key is not None:
            write.done("run.record", run, run=run)
        row = run_of(write.transaction, run)
    return json_reply(run_json(row), 201 if made else 200, {"Location": f"/v1/runs/{run}"})


@blueprint.put("/v1/runs/<run>/frames/<int:n>")
@answers(
    {204: Answer(text="It is kept; Next-Frame is the number that is wanted next.", headers=("Next-Frame",))},
    problems=(
        "bad-record", "frame-differs", "frame-missing", "run-ended", "run-differs", "too-large", *STORING,
        "unsupported-media-type", "foreign-origin", "malformed-request",
    ),
    scope="runs:write",
    takes=_BYTES,
)  # fmt: skip
def send_frame(run: str, n: int) -> Response:
    """Send frames of a record, of at most 1 MiB and 8,000 rows each: the header first, in order, without a gap.

    A body has one frame or several that follow each other, up to 4 MiB and 2,000 of them; `n` is the first one's
    number. All that are new are kept, or none; the same frames again change nothing. A run has at most 64 MiB,
    2,000,000 rows and 100,000 frames.
    """
    asking, shared = caller(), context()
    if not is_id("run", run):
        raise Problem("not-found", f"There is no run {run[:40]}.")
    check_encoding()
    if request.mimetype != MEDIA:
        raise Problem("unsupported-media-type", f"The body's type is {request.content_type or 'not given'!r:.100}.",
                      hint=f"Send `Content-Type: {MEDIA}`.")  # fmt: skip
    request.max_content_length = MOST_REQUEST_BYTES
    sent = request.get_data(cache=False)
    try:
        frames = _frames(sent)
    except Problem:
        with shared.database.read() as transaction:
            run_of(transaction, run)  # of a run that nobody has, nothing else is said
        raise
    with within_quotas(), _refusals(run), shared.database.begin() as transaction:
        shared.room.demand(transaction, tenant_id=asking.tenant_id)
        try:
            sees = {"tenant_id": asking.tenant_id, "sees_project": asking.project_id}
            wanted = recorders.take(
                transaction, run, n, *frames, **sees, lease_seconds=shared.settings.recorder_lease_seconds
            )
        except recorder_requests.NotWatched as error:
            raise Problem("run-differs", _sentence(error)) from None
        except recorder_requests.Differs as error:
            raise Problem("frame-differs", _sentence(error)) from None
    return Response(status=204, headers={"Next-Frame": str(wanted)})


def _frames(sent: bytes) -> list[recorder_requests.SentFrame]:
    """Decode the frames in a body, each by itself.

    Raises:
        Problem: `bad-record`.
    """
    found: list[recorder_requests.SentFrame] = []
    try:
        for frame in islice(split(sent) if sent and not sent.startswith(MAGIC) else (sent,), MOST_FRAMES_AT_ONCE + 1):
            kind, rows = frame_kind(frame)
            found.append(recorder_requests.SentFrame(body=frame, kind=kind, rows=rows))
    except BadRecord as error:
        raise _bad(error.code, error) from None
    if len(found) > MOST_FRAMES_AT_ONCE:
        raise _bad("too-many-frames", ValueError(f"more than {MOST_FRAMES_AT_ONCE:,} frames in one request"))
    return found


def _tell(run: str, told: recorder_end.ReportedEnd, frames: int | None, *, writes: bool) -> Effect:
    """Keep how the job ended; write its end if `writes`, and nobody else has it in hand."""
    asking, claim = caller(), None
    more: dict[str, Any] = {"frames": frames, "tenant_id": asking.tenant_id, "sees_project": asking.project_id}
    with _refusals(run), effect() as write:
        try:
            if writes:
                claim = recorder_end.close(write.transaction, run, told, **more)
            is_new = claim is not None if writes else recorder_end.hand_over(write.transaction, run, told, **more)
        except recorder_requests.Differs as error:
            raise Problem("run-differs", _sentence(error)) from None
        except recorder_end.BeingEnded:
            is_new = False
        if write.known is None and (is_new or write.key is not None):
            write.done("run.end", run, run=run, detail={"status": told.status})
    if claim is not None:
        recorder_end.settle(context().database, claim)
    return write


@blueprint.post("/v1/runs/<run>/end")
@body(JobEnded, optional=True)
@answers(
    {
        200: Answer(text="It has ended; its findings come within seconds.", model=RunTold),
        202: Answer(
            text="The end is accepted; the record will be written soon.", model=RunTold, headers=("Retry-After",)
        ),
    },
    problems=("frame-missing", "run-differs", *ONCE),
    headers=("Idempotency-Key",),
    scope="runs:write",
)
def end_run(run: str, body: JobEnded) -> Response:
    """Say how the job ended: its frames become the record, which is judged by today's rules. What was said first holds.

    Frames that make no record end the run as failed, with the reason. Few ends are written at a time, and nobody may
    have all of them: an end beyond that, or one that another request has in hand, is answered by 202. What was said is
    kept then, nothing needs to be sent again, and the end is written within seconds.
    """
    told = recorder_end.ReportedEnd(
        status=body.status,
        exit_code=body.exit_code,
        wall_seconds=body.wall_seconds,
        error=None if body.error is None else body.error.model_dump(),
    )
    seat = context().ends.take(caller())
    if isinstance(seat, str):
        write = _tell(run, told, body.frames, writes=False)
    else:
        try:
            with turns.aside():
                write = _tell(run, told, body.frames, writes=True)
        finally:
            seat()
    with context().database.read() as transaction:
        row = run_of(transaction, run)
    if not row.ended:
        return json_reply(run_json(row), 202, {"Retry-After": str(RETRY_SECONDS), **write.headers})
    return json_reply(run_json(row), 200, write.headers)
