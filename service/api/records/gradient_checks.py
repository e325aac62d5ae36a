"""What the check of gradients saw: `capture.check` asks for it."""

from __future__ import annotations

from flask import Response
from pydantic import Field

from backprobe.record.rows.gradient_checks import Verdict
from service.api.runs.run_json import require_record, run_of
from service.context import context
from service.openapi.document import Answer, Operations, answers
from service.schemas.responses.gradient_checks import GradientCheckList
from service.web.body import query
from service.web.parameters import Page
from service.web.reply import cache_headers, not_modified, page_reply, read_cursor
from store import queries
from store.queries.gradient_checks import gradient_checks

blueprint = Operations("gradient_checks", __name__, tag="What the run saw")


class ChecksQuery(Page):
    """Which rows."""

    verdict: Verdict | None = Field(default=None, description="Only those with this verdict.")


@blueprint.get("/v1/runs/<run>/gradient-checks")
@query(ChecksQuery)
@answers(
    {
        200: Answer(text="A page of rows, in order.", model=GradientCheckList, headers=("Link", "ETag")),
        304: Answer(text="Not changed since."),
    },
    problems=("record-expired",),
    headers=("If-None-Match",),
)
def list_gradient_checks(run: str, query: ChecksQuery) -> Response:
    """Is each gradient that a step used the derivative of its loss? One row for each leaf that was compared, or not."""
    with context().database.read() as transaction:
        row = require_record(run_of(transaction, run))
        listing = f"{row.id} gradient checks {query.verdict or ''}"
        place = read_cursor(listing, query)
        if same := not_modified(row):
            return same
        after = place[0] if place else 0
        found = gradient_checks(transaction, row, after=after, limit=query.limit + 1, verdict=query.verdict)
    following = [after + query.limit] if len(found) > query.limit else None
    return page_reply(listing, query, queries.as_json(found[: query.limit]), following, cache_headers(row))
