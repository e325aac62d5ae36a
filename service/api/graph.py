"""The autograd graph: boxes and edges as JSON, or the drawing itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

from apiflask import APIBlueprint
from flask import Response
from pydantic import Field

from backprobe.show import graph as drawing
from backprobe.show import svg
from service.api.asked import Strict, Whole
from service.api.body import query
from service.api.reply import cache_headers, json_reply, not_modified
from service.api.run_json import recorded, run_of
from service.context import context
from service.errors import Place, Problem
from service.openapi import Answer, answers
from store import queries, records

if TYPE_CHECKING:
    from backprobe.record import Record
    from store.run import RunRow
    from store.session import Transaction

blueprint = APIBlueprint("graph", __name__, tag="What the run saw")

MOST_NODES: Final = 5_000
"""A record with more is not read whole for one answer: at this bound that takes half a second of a core."""

MOST_RECORD_BYTES: Final = 2 << 20
"""Of frames: the same bound for a record that is large without nodes; a MiB takes about two seconds of a core."""


class GraphQuery(Strict):
    """Which part of the graph, and as what."""

    call: Annotated[Whole, Field(ge=0, le=2**31 - 1)] | None = Field(
        default=None, description="Number of a backward call; the last one that was walked if it is not given."
    )
    format: Literal["json", "svg"] = "json"


@blueprint.get("/v1/runs/<run>/graph")
@query(GraphQuery)
@answers(
    {
        200: Answer(
            text="Boxes and edges, or their drawing.",
            model=drawing.Graph,
            media={"image/svg+xml": {"schema": {"type": "string"}}},
            headers=("ETag",),
        ),
        304: Answer(text="Not changed since."),
    },
    problems=("record-expired", "too-much-asked"),
    headers=("If-None-Match",),
)
def get_graph(run: str, query: GraphQuery) -> Response:
    """The autograd graph of a run: leaves, also those that need no grad, non-leaves, nodes, held and freed parts."""
    with context().database.read() as transaction:
        row = recorded(run_of(transaction, run))
        if same := not_modified(row):
            return same
        record = _record(transaction, row)
    calls = record.backward_calls if record is not None else ()
    if query.call is not None and all(call.call != query.call for call in calls):
        detail = f"There is no backward call {query.call}; there are {len(calls)}."
        raise Problem("not-found", detail, places=(Place(parameter="call", code="not-found", detail=detail),))
    found = drawing.Graph() if record is None else drawing.graph_of(record, call=query.call)
    if query.format == "svg":
        return Response(svg.render(found), 200, cache_headers(row), mimetype="image/svg+xml")
    return json_reply(queries.as_json(found), headers=cache_headers(row))


def _record(transaction: Transaction, run: RunRow) -> Record | None:
    if run.key is None or run.record.live:
        return None
    told = run.record
    if told.nodes > MOST_NODES or told.bytes > MOST_RECORD_BYTES:
        detail = (
            f"The record has {told.nodes:,} nodes and {told.tensors:,} tensors in {told.bytes:,} bytes; "
            f"a graph is drawn of up to {MOST_NODES:,} nodes in {MOST_RECORD_BYTES:,} bytes."
        )
        raise Problem("too-much-asked", detail)
    return records.load(transaction, run.key)
