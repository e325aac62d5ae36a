"""The code line by line with what happened on each line, and what the program printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from service.api.records.moments import At, moment_at
from service.api.records.record import NoQuery
from service.api.records.source_json import MOST_LINES, source_json
from service.api.runs.run_json import require_record, run_of
from service.context import context
from service.openapi.document import Answer, Operations, answers
from service.problems.errors import Place, Problem
from service.schemas.responses.runs import SourceTold, Streams
from service.web.body import Strict, query
from service.web.reply import cache_headers, json_reply, not_modified
from store import queries
from store.runs import lifecycle

if TYPE_CHECKING:
    from flask import Response

blueprint = Operations("source", __name__, tag="What the run saw")

_SAME = Answer(text="Not changed since.")


class SourceQuery(Strict):
    """Which lines of which file."""

    file: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        default=None, description="A path of the snippet; the entry if it is not given."
    )
    at: At | None = Field(
        default=None,
        description="As it was at a moment: its number, or `after-backward:0`. Names, passes, calls and bytes are those"
        " by then; findings are those of the whole run. The end if not given.",
    )
    lines: Annotated[str, Field(pattern=r"^[1-9][0-9]{0,8}-[1-9][0-9]{0,8}$")] | None = Field(
        default=None, description=f"First and last line, `1-200`; at most {MOST_LINES} of them, and those by default."
    )


def _span(query: SourceQuery) -> tuple[int, int]:
    """First and last line asked for.

    Raises:
        Problem: `too-much-asked`, `invalid-request`.
    """
    if query.lines is None:
        return 1, MOST_LINES
    first, last = (int(part) for part in query.lines.split("-"))
    if last < first:
        detail = "The last line comes before the first."
        raise Problem("invalid-request", detail, places=(Place(parameter="lines", code="empty-range", detail=detail),))
    if last - first >= MOST_LINES:
        detail = f"That is {last - first + 1:,} lines; {MOST_LINES:,} at a time is the most."
        raise Problem(
            "too-much-asked", detail, places=(Place(parameter="lines", code="too-much-asked", detail=detail),)
        )
    return first, last


@blueprint.get("/v1/runs/<run>/source")
@query(SourceQuery)
@answers(
    {200: Answer(text="Lines of one file.", model=SourceTold, headers=("ETag",)), 304: _SAME},
    problems=("source-not-kept", "too-much-asked"),
    headers=("If-None-Match",),
)
def get_source(run: str, query: SourceQuery) -> Response:
    """The code line by line: names bound with their state, passes, backward calls, bytes held, findings.

    Of a run whose record was made elsewhere the files are those whose text came along; a line that did not is `…`.
    """
    first, last = _span(query)
    with context().database.read() as transaction:
        row = run_of(transaction, run)
        if same := not_modified(row):
            return same
        moment = None if query.at is None else moment_at(transaction, row, query.at)
        found = queries.source(transaction, row, path=query.file, at=moment)
        kept = found is not None or row.snippet is None or lifecycle.program_of(transaction, row) is not None
    if row.snippet is None and found is None and query.file is None:
        raise Problem("source-not-kept", f"Run {row.id} has no snippet, and its record came without the source.")
    if not kept:
        raise Problem("source-not-kept", f"The program of run {row.id} is not kept.")
    if found is None:
        raise Problem("not-found", f"Run {row.id} has no file {(query.file or '')[:200]}.")
    return json_reply(source_json(row, found, first, last), headers=cache_headers(row))


@blueprint.get("/v1/runs/<run>/output")
@query(NoQuery)
@answers(
    {200: Answer(text="Tails and events.", model=Streams, headers=("ETag",)), 304: _SAME},
    problems=("record-expired",),
    headers=("If-None-Match",),
)
def get_output(run: str) -> Response:
    """What the program printed, raised and warned of. It is a stranger's text: escape it where you show it."""
    with context().database.read() as transaction:
        row = require_record(run_of(transaction, run))
        if same := not_modified(row):
            return same
        found = queries.streams(transaction, row)
    return json_reply(queries.as_json(found), headers=cache_headers(row))
