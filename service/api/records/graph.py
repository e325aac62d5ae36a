"""The autograd graph: what is seen of it as JSON, or the drawing itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from flask import Response
from pydantic import Field

from backprobe.show.drawing import svg
from backprobe.show.drawing.graph import Arrow, Box, Graph
from service.api.records.moments import At, moment_at
from service.api.records.record_pages import too_much
from service.api.runs.run_json import require_record, run_of
from service.context import context
from service.openapi.document import Answer, Operations, answers
from service.problems.errors import Place, Problem
from service.web.body import Strict, query
from service.web.parameters import Flag, Split, Whole
from service.web.reply import cache_headers, json_reply, not_modified
from store import queries

if TYPE_CHECKING:
    from store.queries import GraphBox, GraphView

blueprint = Operations("graph", __name__, tag="What the run saw")

_Call = Annotated[str, Field(pattern="^c[0-9]{1,9}$")]
_Instance = Annotated[str, Field(pattern="^p[0-9]{1,9}$")]


class GraphQuery(Strict):
    """Which part of the graph, and as what."""

    root: Annotated[str, Field(pattern="^(call|tensor|node):[0-9]{1,9}$")] | None = Field(
        default=None,
        description="Where it begins: `call:0` a backward call, `tensor:4`, `node:12`; the last backward call that was"
        " walked if it is not given, by the moment `at` if that is.",
    )
    call: Annotated[Whole, Field(ge=0, le=2**31 - 1)] | None = Field(
        default=None, description="Number of a backward call: the same as `root=call:N`, which wins."
    )
    at: At | None = Field(
        default=None, description="As it was at a moment: its number, or `after-backward:0`. The end if not given."
    )
    depth: Annotated[Whole, Field(ge=0, le=64)] | None = Field(
        default=None,
        description="Levels of module calls that are open; 0: the outermost ones are boxes. As many as fit into `max`"
        " if it is not given.",
    )
    open: Annotated[list[_Call | _Instance], Split, Field(min_length=1, max_length=100)] | None = Field(
        default=None,
        description="Ids of boxes that are open beside, joined by commas: `c5` a module call, `p12` the instance of a"
        " pattern that begins with node 12.",
    )
    focus: _Call | None = Field(default=None, description="Only what is in this module call: `c5`.")
    find: Annotated[str, Field(min_length=1, max_length=100)] | None = Field(
        default=None,
        description="Nodes by a word in their type, their module call or the name of their tensor, drawn or not.",
    )
    repeats: Flag = Field(
        default=True,
        description="Equal closed calls that follow each other are one box with a count, and so are patterns of boxes"
        " that come again and again where there are more than 60 boxes; `false`: each.",
    )
    max: Annotated[Whole, Field(ge=1, le=1500)] = Field(
        default=400,
        description="Boxes at most, leaves that need no gradient apart. If there are more, the request is refused where"
        " `depth` is given; else the nearest to the root are returned and `hidden` counts the others.",
    )
    format: Literal["json", "svg"] = "json"


@blueprint.get("/v1/runs/<run>/graph")
@query(GraphQuery)
@answers(
    {
        200: Answer(
            text="Boxes and edges, or their drawing.",
            model=queries.GraphView,
            media={"image/svg+xml": {"schema": {"type": "string"}}},
            headers=("ETag",),
        ),
        304: Answer(text="Not changed since."),
    },
    problems=("record-expired", "too-much-asked"),
    headers=("If-None-Match",),
)
def get_graph(run: str, query: GraphQuery) -> Response:
    """The autograd graph of a run below a root, folded by module call: leaves, nodes, held and freed parts."""
    root = query.root if query.root is not None or query.call is None else f"call:{query.call}"
    opened, instances = ([int(name[1:]) for name in query.open or () if name[0] == of] for of in "cp")
    with context().database.read() as transaction:
        row = require_record(run_of(transaction, run))
        if same := not_modified(row):
            return same
        moment = None if query.at is None else moment_at(transaction, row, query.at)
        asked = queries.GraphAsked(
            root=root,
            moment=moment,
            depth=query.depth,
            opened=opened,
            instances=instances,
            repeats=query.repeats,
            most=query.max,
            focus=None if query.focus is None else int(query.focus[1:]),
            find=query.find,
        )
        try:
            found = queries.graph_view(transaction, row, asked)
        except queries.NoSuchRoot as error:
            name = (
                ("focus" if query.focus is not None and f" {query.focus[1:]};" in str(error) else "open")
                if "module call" in str(error)
                else "root"
                if query.root is not None
                else "call"
            )
            place = Place(parameter=name, code="not-found", detail=str(error))
            raise Problem("not-found", str(error), places=(place,)) from None
        except queries.TooMuch as error:
            raise too_much(error) from None
    if query.format == "svg":
        return Response(svg.render(drawing_of(found)), 200, cache_headers(row), mimetype="image/svg+xml")
    return json_reply(queries.as_json(found), headers=cache_headers(row))


def drawing_of(found: GraphView) -> Graph:
    """Convert a graph to what a drawing takes: closed calls are drawn as nodes."""
    return Graph(
        boxes=tuple(_box(box) for box in found.boxes),
        edges=tuple(Arrow(start=edge.start, end=edge.end, wanted=edge.wanted) for edge in found.edges),
        call=found.call,
        hidden=found.hidden,
        truncated=found.truncated,
    )


def _box(box: GraphBox) -> Box:
    told: dict[str, Any] = {name: getattr(box, name) for name in Box.__slots__}
    if box.kind in {"call", "fold", "pattern"}:
        told["kind"] = "node"
    return Box(**told)
