"""The history of a run as arrays: its steps, one tensor's series, and the heatmap of many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from flask import Response
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from backprobe.record.rows.events import MomentKind
from service.api.records.exports import BATCH, EXPORTS, MEDIA, export, vary_headers, wanted_format
from service.api.records.record_pages import too_much
from service.api.records.tensor_filters import Moment
from service.api.runs.run_json import require_record, run_of
from service.context import context
from service.openapi.document import Answer, Operations, answers
from service.problems.errors import Place, Problem
from service.web.body import Strict, query
from service.web.parameters import Flag, Split, Whole
from service.web.reply import cache_headers, json_reply, not_modified
from store import queries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from store.database.session import Database
    from store.runs.model import RunRow

blueprint = Operations("history", __name__, tag="What the run saw")

Column = Literal[
    "value_norm", "value_sum", "value_min", "value_max", "grad_norm", "grad_sum", "grad_min", "grad_max",
    "value_nan", "value_inf", "value_zeros", "grad_nan", "grad_inf", "grad_zeros", "version",
]  # fmt: skip
Stat = Literal[
    "value_norm", "value_sum", "value_min", "value_max", "grad_norm", "grad_sum", "grad_min", "grad_max"
]  # fmt: skip
_MOST_STEP: Final = 2**31 - 1


def _steps(value: str) -> str:
    first, _, last = value.partition("-")
    if int(first) > int(last) or int(last) > _MOST_STEP:
        raise PydanticCustomError("steps", "Steps are a first and a last one, such as 0-999")
    return value


Steps = Annotated[str, Field(pattern="^[0-9]{1,10}-[0-9]{1,10}$"), AfterValidator(_steps)]
"""First and last step, `0-999`."""


def span(steps: str | None) -> tuple[int, int]:
    """Parse the first and the last step that were asked for."""
    if steps is None:
        return 0, _MOST_STEP
    first, _, last = steps.partition("-")
    return int(first), int(last)


class SeriesQuery(Strict):
    """Which columns of a tensor's snapshots, and when."""

    columns: Annotated[list[Column], Split, Field(min_length=1, max_length=15)] = Field(
        default_factory=lambda: ["grad_norm"], description="Names, joined by commas; grad_norm if not given."
    )
    from_moment: Moment | None = Field(default=None, alias="from", description="First moment.")
    to_moment: Moment | None = Field(default=None, alias="to", description="Last moment.")
    points: Annotated[Whole, Field(ge=1, le=5000)] | None = Field(
        default=None, description="At most so many values of a column, each the peak of its stretch; else all."
    )


class HeatQuery(Strict):
    """Which statistic, of which tensors, at which moments; where nothing chooses tensors, the parameters."""

    stat: Stat = Field(default="grad_norm", description="What is measured.")
    kind: MomentKind = Field(default="after-backward", description="Kind of the moments that are its columns.")
    tensors: (
        Annotated[list[Annotated[Whole, Field(ge=0, le=2**31 - 1)]], Split, Field(min_length=1, max_length=500)] | None
    ) = Field(default=None, description="Numbers, joined by commas.")
    name: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        default=None, description="Glob over every name that a tensor had: `h.*.weight`."
    )
    fqn: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        default=None, description="Glob over its name in the model."
    )
    role: (
        Annotated[list[Literal["parameter", "buffer", "optimizer-only"]], Split, Field(min_length=1, max_length=3)]
        | None
    ) = Field(default=None, description="Any of these, joined by commas.")
    is_leaf: Flag | None = None
    requires_grad: Flag | None = None
    steps: Steps | None = Field(default=None, description="First and last step: `0-9999`.")
    points: Annotated[Whole, Field(ge=1, le=2000)] = Field(
        default=500,
        description="Columns at most; more moments are thinned out evenly, and `exact` is false. For json only.",
    )
    format: Literal["json", "ndjson", "csv", "parquet"] | None = Field(
        default=None,
        description="What to answer with; `Accept` says it too. All but json answer with a row for every tensor and"
        " moment that has a value, however many there are.",
    )


class StepsQuery(Strict):
    """Which steps, and how many values."""

    steps: Steps | None = Field(default=None, description="First and last step: `0-9999`.")
    points: Annotated[Whole, Field(ge=1, le=2000)] = Field(
        default=500,
        description="Values of a column at most; of more steps each is the peak of its stretch, and `exact` is false. "
        "For json only.",
    )
    format: Literal["json", "ndjson", "csv", "parquet"] | None = Field(
        default=None,
        description="What to answer with; `Accept` says it too. All but json answer with a row for every step.",
    )


_PROBLEMS: Final = ("record-expired", "too-much-asked")
_SAME: Final = Answer(text="Not changed since.")


@blueprint.get("/v1/runs/<run>/tensors/<int:no>/series")
@query(SeriesQuery)
@answers(
    {200: Answer(text="Arrays of equal length.", model=queries.Series, headers=("ETag",)), 304: _SAME},
    problems=_PROBLEMS,
    headers=("If-None-Match",),
)
def get_series(run: str, no: int, query: SeriesQuery) -> Response:
    """Numbers of one tensor over its moments; null: not captured, "NaN": not a number."""
    with context().database.read() as transaction:
        row = require_record(run_of(transaction, run))
        if same := not_modified(row):
            return same
        given = {name: getattr(query, name) for name in ("from_moment", "to_moment", "points")}
        asked: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        columns = list(dict.fromkeys(query.columns))
        try:
            found = queries.curve(transaction, row, no, columns, **asked)
        except queries.TooMuch as error:
            raise too_much(error) from None
        if found is None or (not found.snapshots and queries.tensor(transaction, row, no) is None):
            raise Problem("not-found", f"Run {row.id} has no tensor {no}.")
    return json_reply(found, headers=cache_headers(row))


@blueprint.get("/v1/runs/<run>/series")
@query(HeatQuery)
@answers(
    {
        200: Answer(
            text="A row of numbers for each tensor, or a row for each value in another format.",
            model=queries.Heatmap,
            media={MEDIA[name]: {"schema": {"type": "string"}} for name in EXPORTS},
            headers=("ETag", "Content-Disposition"),
        ),
        304: _SAME,
    },
    problems=(*_PROBLEMS, "not-acceptable", "too-many-streams"),
    headers=("If-None-Match", "Accept"),
)
def get_heatmap(run: str, query: HeatQuery) -> Response:
    """One statistic of many tensors over the moments of a kind; null: not captured, "NaN": not a number.

    Where nothing chooses tensors, JSON tells of the parameters, in a program without modules of the leaves that require
    grad; of more than 400, of the first 400. The other formats have all tensors then.
    """
    form = wanted_format(query.format, EXPORTS)
    asked = _query_to_curve(query)
    with context().database.read() as transaction:
        row = require_record(run_of(transaction, run))
        headers = vary_headers(cache_headers(row), form)
        if form == "json":
            if same := not_modified(row):
                return same
            try:
                found = queries.heat(
                    transaction,
                    row,
                    asked.stat,
                    kind=asked.kind,
                    first_step=asked.first_step,
                    last_step=asked.last_step,
                    points=query.points,
                    tensors=queries.select_trained_tensors(transaction, row) if _is_bare(query) else asked.tensors,
                )
            except queries.TooMuch as error:
                raise too_much(error) from None
            return json_reply(found, headers=headers)
    _refuse_points(query, "moment")
    batches = _batches(context().database, row, asked)
    return export(f"{row.id}-{asked.stat}", form, queries.CurveRow, batches, headers)


@blueprint.get("/v1/runs/<run>/steps")
@query(StepsQuery)
@answers(
    {
        200: Answer(
            text="Arrays of equal length, or a row for each step in another format.",
            model=queries.StepCurves,
            media={MEDIA[name]: {"schema": {"type": "string"}} for name in EXPORTS},
            headers=("ETag", "Content-Disposition"),
        ),
        304: _SAME,
    },
    problems=("record-expired", "not-acceptable", "too-many-streams"),
    headers=("If-None-Match", "Accept"),
)
def get_steps(run: str, query: StepsQuery) -> Response:
    """Loss, gradient norm and learning rate over training steps; null: not measured, "NaN": not a number."""
    form = wanted_format(query.format, EXPORTS)
    first, last = span(query.steps)
    with context().database.read() as transaction:
        row = require_record(run_of(transaction, run))
        headers = vary_headers(cache_headers(row), form)
        if form == "json":
            if same := not_modified(row, headers):
                return same
            found = context().curves.load(transaction, row, query.points, (first, last))
            return json_reply(queries.as_json(found), headers=headers)
    _refuse_points(query, "step")
    batches = _step_batches(context().database, row, first, last)
    return export(f"{row.id}-steps", form, queries.StepRow, batches, headers)


def _step_batches(database: Database, row: RunRow, first: int, last: int) -> Iterator[list[Any]]:
    """Yield the rows, in a transaction for each batch."""
    while True:
        with database.read() as transaction:
            rows = queries.step_rows(transaction, row, first_step=first, last_step=last, limit=BATCH)
        yield queries.as_json(rows)
        if len(rows) < BATCH:
            return
        first = rows[-1].step + 1


def _refuse_points(query: HeatQuery | StepsQuery, unit: str) -> None:
    """Raise a problem if `points` is asked for together with a format that has every row."""
    if "points" in query.model_fields_set:
        detail = f"points goes with json; other formats have every {unit}."
        place = Place(parameter="points", code="not-with-format", detail=detail)
        raise Problem("invalid-request", detail, places=(place,))


def _is_bare(query: HeatQuery) -> bool:
    """Nothing chooses tensors."""
    return not query.model_fields_set & {"tensors", "name", "fqn", "role", "is_leaf", "requires_grad"}


def _query_to_curve(query: HeatQuery) -> queries.CurveAsked:
    first, last = span(query.steps)
    given = {name: getattr(query, name) for name in ("name", "fqn", "role", "is_leaf", "requires_grad")}
    chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return queries.CurveAsked(
        stat=query.stat,
        kind=query.kind,
        first_step=first,
        last_step=last,
        tensors=queries.TensorFilter(numbers=query.tensors or (), **chosen),
    )


def _batches(database: Database, row: RunRow, asked: queries.CurveAsked) -> Iterator[list[Any]]:
    """Yield the rows, in a transaction for each batch."""
    after = None
    while True:
        with database.read() as transaction:
            rows, after = queries.curve_rows(transaction, row, asked, after=after, limit=BATCH)
        yield queries.as_json(rows)
        if after is None:
            return
