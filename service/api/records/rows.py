"""Return rows of the record's tables unchanged, for data that has no separate URL."""

from __future__ import annotations

from flask import Response

from service.api.runs.run_json import require_record, run_of
from service.context import context
from service.openapi.document import Answer, Operations, answers
from service.problems.errors import Problem
from service.schemas.responses.runs import RowList
from service.web.body import query
from service.web.parameters import Page
from service.web.reply import cache_headers, not_modified, page_reply, read_cursor
from store import queries

blueprint = Operations("rows", __name__, tag="What the run saw")


@blueprint.get("/v1/runs/<run>/rows/<table>")
@query(Page)
@answers(
    {
        200: Answer(text="A page of rows.", model=RowList, headers=("Link", "ETag")),
        304: Answer(text="Not changed since."),
    },
    problems=("record-expired",),
    headers=("If-None-Match",),
)
def list_rows(run: str, table: str, query: Page) -> Response:
    """Rows of one table of the record, in order of their key; docs/reference/record.md tells their fields."""
    with context().database.read() as transaction:
        row = require_record(run_of(transaction, run))
        if table not in queries.LISTABLE:
            raise Problem(
                "not-found", f"No rows of {table[:40]!r} are listed; of these: {', '.join(queries.LISTABLE)}."
            )
        listing = f"{row.id} rows of {table}"
        after = read_cursor(listing, query)
        if same := not_modified(row):
            return same
        page = queries.rows(transaction, row, table, after=after[0] if after else 0, limit=query.limit)
    following = None if page.next is None else [page.next]
    return page_reply(listing, query, queries.as_json(page.items), following, cache_headers(row))
