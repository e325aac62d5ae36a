"""The autograd nodes of a run, and one backward call with what it did at each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from flask import Response
from pydantic import Field

from service.api.records.record import NoQuery
from service.api.records.record_pages import page_below
from service.api.records.tensor_filters import Line
from service.api.runs.run_json import require_record, run_of
from service.context import context
from service.openapi.document import Answer, Operations, answers
from service.problems.errors import Problem
from service.schemas.responses.parts import BackwardCallFull, NodeList
from service.web.body import query
from service.web.parameters import Flag, Page, Split, Whole
from service.web.reply import cache_headers, json_reply, next_link, not_modified, read_cursor, sign
from store import queries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.database.session import Transaction
    from store.runs.model import RunRow

blueprint = Operations("nodes", __name__, tag="What the run saw")

Number = Annotated[Whole, Field(ge=0, le=2**31 - 1)]
_SAME = Answer(text="Not changed since.")


class NodesQuery(Page):
    """Which nodes."""

    type: (
        Annotated[list[Annotated[str, Field(pattern="^[A-Za-z0-9_.:<>]{1,100}$")]], Split, Field(min_length=1)] | None
    ) = Field(default=None, max_length=50, description="`MulBackward0`. Any of these, joined by commas.")
    line: Line | None = Field(default=None, description="Made there.")
    path: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    call: Number | None = Field(default=None, description="Met by this backward call.")
    module_call: Number | None = Field(default=None, description="Made in this call of a module.")
    held: Flag | None = Field(default=None, description="Whether what it saved is still held.")


@blueprint.get("/v1/runs/<run>/nodes")
@query(NodesQuery)
@answers(
    {200: Answer(text="A page of nodes.", model=NodeList, headers=("Link", "ETag")), 304: _SAME},
    problems=("record-expired",),
    headers=("If-None-Match",),
)
def list_nodes(run: str, query: NodesQuery) -> Response:
    """The autograd nodes of a run, by number: what made them, what they saved, and whether it is still held."""

    def page_of(transaction: Transaction, row: RunRow, after: Sequence[Any] | None) -> Any:
        last = after[0] if after else None
        page = queries.nodes(transaction, row, after=last, limit=query.limit, **query.filters())
        return page.items, None if page.next is None else [page.next]

    return page_below(run, "nodes", query, page_of)


@blueprint.get("/v1/runs/<run>/nodes/<int:node>")
@query(NoQuery)
@answers(
    {200: Answer(text="The node.", model=queries.NodeFull, headers=("ETag",)), 304: _SAME},
    problems=("record-expired",),
    headers=("If-None-Match",),
)
def get_node(run: str, node: int) -> Response:
    """One node: its edges, what it saved, what each backward call did there, and how its line is known."""
    with context().database.read() as transaction:
        row = require_record(run_of(transaction, run))
        if same := not_modified(row):
            return same
        found = queries.node(transaction, row, node)
        if found is None:
            raise Problem("not-found", f"Run {row.id} has no node {node}; it has {row.record.nodes} of them.")
    return json_reply(queries.as_json(found), headers=cache_headers(row))


@blueprint.get("/v1/runs/<run>/backward-calls/<int:call>")
@query(Page)
@answers(
    {
        200: Answer(text="The call and a page of its passes.", model=BackwardCallFull, headers=("Link", "ETag")),
        304: _SAME,
    },
    problems=("record-expired",),
    headers=("If-None-Match",),
)
def get_backward_call(run: str, call: int, query: Page) -> Response:
    """One backward call, and what it did at each node in order of execution: gradient, freed or not."""
    with context().database.read() as transaction:
        row = require_record(run_of(transaction, run))
        listing = f"{row.id} backward call {call}"
        after = read_cursor(listing, query)
        if same := not_modified(row):
            return same
        found = queries.backward_calls(transaction, row, call=call, limit=1)
        if not found:
            raise Problem("not-found", f"Run {row.id} has no backward call {call}.")
        key = (after[0], after[1], after[2]) if after else None
        page = queries.passes(transaction, row, call, after=key, limit=query.limit)
    cursor = None if page.next is None else sign(listing, query.filters(), page.next)
    told = {"call": queries.as_json(found[0]), "passes": {"items": queries.as_json(page.items), "next_cursor": cursor}}
    return json_reply(told, headers=cache_headers(row) | next_link(cursor))
