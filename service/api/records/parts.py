"""Parts of a record that have filters of their own: moments, changes of gradients and tensors, modules, retention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from flask import Response
from pydantic import Field

from service.api.records.history import Steps, span
from service.api.records.record_pages import page_below, too_much
from service.api.records.tensor_filters import Kinds, Line
from service.api.runs.run_json import require_record, run_of
from service.context import context
from service.openapi.document import Answer, Operations, answers
from service.schemas.responses.parts import RetentionTold
from service.schemas.responses.runs import RowList
from service.web.body import Strict, query
from service.web.parameters import Page, Whole
from service.web.reply import cache_headers, json_reply, not_modified
from store import queries

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from store.database.session import Transaction
    from store.runs.model import RunRow

blueprint = Operations("parts", __name__, tag="What the run saw")

Number = Annotated[Whole, Field(ge=0, le=2**31 - 1)]
_SAME: Final = Answer(text="Not changed since.")


def _row_list_answers(text: str) -> Callable[[Any], Any]:
    return answers(
        {200: Answer(text=text, model=RowList, headers=("Link", "ETag")), 304: _SAME},
        problems=("record-expired",),
        headers=("If-None-Match",),
    )


class PlaceQuery(Page):
    """Which rows, by where they belong in the program."""

    line: Line | None = Field(default=None, description="Of this line.")
    path: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(default=None, description="Of this file.")


class TensorPartQuery(PlaceQuery):
    """Which rows, by tensor and place."""

    tensor: Number | None = Field(default=None, description="Of this tensor.")


class MomentsQuery(PlaceQuery):
    """Which moments."""

    kind: Kinds | None = Field(default=None, description="Any of these, joined by commas.")
    step: Number | None = Field(default=None, description="With so many optimizer steps finished before.")


class RetentionQuery(Strict):
    """Which steps, and how much of each."""

    steps: Steps | None = Field(default=None, description="First and last step: `0-99`.")
    top: Annotated[Whole, Field(ge=1, le=50)] = Field(default=12, description="Lines and roots of each, by bytes.")


def _rows(run: str, table: str, query: Page) -> Response:
    def page_of(transaction: Transaction, row: RunRow, after: Sequence[Any] | None) -> Any:
        last = after[0] if after else None
        page = queries.select_rows(transaction, row, table, after=last, limit=query.limit, **query.filters())
        return page.items, None if page.next is None else [page.next]

    return page_below(run, table, query, page_of)


@blueprint.get("/v1/runs/<run>/moments")
@query(MomentsQuery)
@_row_list_answers("A page of moments, in order of the run.")
def list_moments(run: str, query: MomentsQuery) -> Response:
    """The points in the run at which state was taken, with line, step, time and modes."""
    return _rows(run, "moments", query)


@blueprint.get("/v1/runs/<run>/leaf-grads")
@query(TensorPartQuery)
@_row_list_answers("A page of changes, in order of time.")
def list_leaf_grads(run: str, query: TensorPartQuery) -> Response:
    """What became of each leaf's `.grad`: populated, accumulated, zeroed, set to None, assigned."""
    return _rows(run, "leaf_grads", query)


@blueprint.get("/v1/runs/<run>/inplace-events")
@query(TensorPartQuery)
@_row_list_answers("A page of changes in place, in order of time.")
def list_inplace_events(run: str, query: TensorPartQuery) -> Response:
    """Changes of tensors in place: each time that a `_version` rose, and what did it."""
    return _rows(run, "inplace_events", query)


@blueprint.get("/v1/runs/<run>/modules")
@query(TensorPartQuery)
@_row_list_answers("A page of modules, by number.")
def list_modules(run: str, query: TensorPartQuery) -> Response:
    """The nn.Modules of the program with their parameters and buffers; by `tensor`: those that it is one of."""
    return _rows(run, "modules", query)


@blueprint.get("/v1/runs/<run>/optimizers")
@query(TensorPartQuery)
@_row_list_answers("A page of optimizers, by number.")
def list_optimizers(run: str, query: TensorPartQuery) -> Response:
    """The optimizers of the program with the tensors that they step; by `tensor`: those that step it."""
    return _rows(run, "optimizers", query)


@blueprint.get("/v1/runs/<run>/retention")
@query(RetentionQuery)
@answers(
    {200: Answer(text="After each backward call, in order.", model=RetentionTold, headers=("ETag",)), 304: _SAME},
    problems=("record-expired", "too-much-asked"),
    headers=("If-None-Match",),
)
def get_retention(run: str, query: RetentionQuery) -> Response:
    """What stayed of the graph after each backward call: by the line that made its root, who holds it, its growth."""
    first, last = span(query.steps)
    with context().database.read() as transaction:
        row = require_record(run_of(transaction, run))
        if same := not_modified(row):
            return same
        try:
            found = queries.load_held_graphs(transaction, row, first_step=first, last_step=last, top=query.top)
        except queries.TooMuch as error:
            raise too_much(error) from None
    return json_reply({"items": queries.as_json(found)}, headers=cache_headers(row))
