"""What the run saw: its tensors, their snapshots, and the backward calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from apiflask import APIBlueprint
from flask import Response
from pydantic import Field

from service.api.asked import Flag, Measure, Page, Split, Strict, Whole
from service.api.body import query
from service.api.exports import BATCH, EXPORTS, MEDIA, export, varied, wanted_format
from service.api.reply import after_of, cache_headers, json_reply, not_modified, page_reply
from service.api.run_json import recorded, run_of
from service.api.told import BackwardCallList, SnapshotList, SnapshotRow, TensorFull, TensorList, TensorRow
from service.context import context
from service.errors import Problem
from service.openapi import Answer, answers
from store import queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from store.run import RunRow
    from store.session import Transaction

    PageOf = Callable[[Transaction, RunRow, Sequence[Any] | None, int], tuple[Sequence[Any], Sequence[Any] | None]]

blueprint = APIBlueprint("record", __name__, tag="What the run saw")

_SAME = Answer(text="Not changed since.")
_ANY_OF = "Any of these, joined by commas."

Moment = Annotated[Whole, Field(ge=0, le=2**31 - 1)]
Line = Annotated[Whole, Field(ge=1, le=2**31 - 1)]
Amount = Annotated[Whole, Field(ge=0, le=2**53)]
Kind = Literal["after-statement", "before-backward", "after-backward", "optimizer-step", "end"]
Kinds = Annotated[list[Kind], Split, Field(min_length=1, max_length=5)]


class ExportQuery(Page):
    """A page of a list, or all of it in another format."""

    format: Literal["json", "ndjson", "csv", "parquet"] | None = Field(
        default=None, description="What to answer with; `Accept` says it too. All but json answer with the whole list."
    )


class TensorFilters(ExportQuery):
    """Which tensors, by their last state."""

    is_leaf: Flag | None = None
    requires_grad: Flag | None = None
    retains_grad: Flag | None = None
    grad_ever: Flag | None = Field(default=None, description="It had a gradient at some moment.")
    role: (
        Annotated[list[Literal["parameter", "buffer", "optimizer-only"]], Split, Field(min_length=1, max_length=3)]
        | None
    ) = Field(default=None, description=_ANY_OF)
    grad: Annotated[list[Literal["none", "present", "not-read"]], Split, Field(min_length=1, max_length=3)] | None = (
        Field(default=None, description=_ANY_OF)
    )
    why: (
        Annotated[list[Annotated[str, Field(pattern="^[a-z-]{1,40}$")]], Split, Field(min_length=1, max_length=20)]
        | None
    ) = Field(default=None, description=f"Verdicts of why_none. {_ANY_OF}")
    name: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        default=None, description="Glob over every name that the tensor had: `h.*.weight`."
    )
    fqn: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        default=None, description="Glob over its name in the model: `h.*.weight`."
    )
    line: Line | None = Field(default=None, description="First seen there.")
    path: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    nonfinite_gt: Amount | None = Field(default=None, alias="nonfinite.gt", description="NaN and Inf ever seen.")
    grad_norm_gt: Measure | None = Field(
        default=None, alias="grad_norm.gt", description="The last one measured; NaN is more than any number."
    )
    value_norm_gt: Measure | None = Field(default=None, alias="value_norm.gt", description="Likewise.")
    held_bytes_gt: Amount | None = Field(default=None, alias="held_bytes.gt", description="Of the graph behind it.")

    def tensors(self) -> dict[str, Any]:
        """The fields of `TensorFilter` that were given."""
        return {name: value for name in FILTERS if (value := getattr(self, name)) is not None}


FILTERS: Final = (
    "is_leaf", "requires_grad", "retains_grad", "grad_ever", "role", "grad", "why", "name", "fqn", "line", "path",
    "nonfinite_gt", "grad_norm_gt", "value_norm_gt", "held_bytes_gt",
)  # fmt: skip


class TensorsQuery(TensorFilters):
    """Which tensors, and in which order."""

    sort: Literal["tensor", "name", "line", "-grad_norm", "-held_bytes"] = Field(
        default="tensor", description="`-`: the greatest first. What has none comes last."
    )


class SnapshotsQuery(TensorFilters):
    """Which snapshots, of which tensors."""

    kind: Kinds | None = Field(default=None, description=f"Kinds of moments. {_ANY_OF}")
    nan: Flag = Field(default=False, description="`true`: only those with a NaN in value or gradient.")


class TensorSnapshotsQuery(ExportQuery):
    """Which snapshots of one tensor."""

    kind: Kinds | None = Field(default=None, description=f"Kinds of moments. {_ANY_OF}")

    from_moment: Moment | None = Field(default=None, alias="from", description="First moment.")
    to_moment: Moment | None = Field(default=None, alias="to", description="Last moment.")


class NoQuery(Strict):
    """No parameters."""


_MEDIA: dict[str, dict[str, Any]] = {MEDIA[name]: {"schema": {"type": "string"}} for name in EXPORTS}
_SENT = ("Link", "ETag", "Content-Disposition")


def _listed(run: str, what: str, query: ExportQuery, row_type: type[Any], page_of: PageOf) -> Response:
    """A page of a list below a run, or all of it in another format.

    Args:
        run: Public id.
        what: Of the run: the list's name.
        query: Format, limit and cursor.
        row_type: The class that describes a row.
        page_of: Rows behind a key, and the key of the last one; None at the end.
    """
    form, database = wanted_format(query.format, EXPORTS), context().database
    with database.read() as transaction:
        row = recorded(run_of(transaction, run))
        listing = f"{row.id} {what}"
        after = after_of(listing, query)
        headers = varied(cache_headers(row), form)
        if form == "json":
            if same := not_modified(row):
                return same
            items, last = page_of(transaction, row, after, query.limit)
            return page_reply(listing, query, queries.as_json(items), last, headers)

    def batches() -> Iterator[Sequence[Any]]:
        key = after
        while True:
            with database.read() as transaction:
                items, key = page_of(transaction, row, key, BATCH)
            yield queries.as_json(items)
            if key is None:
                return

    return export(f"{row.id}-{what.replace(' ', '-')}", form, row_type, batches(), headers)


def _wanted(query: Page, *names: str) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(query, name)) is not None}


@blueprint.get("/v1/runs/<run>/tensors")
@query(TensorsQuery)
@answers(
    {
        200: Answer(
            text="A page of tensors, or all of them in another format.", model=TensorList, media=_MEDIA, headers=_SENT
        ),
        304: _SAME,
    },
    problems=("record-expired", "not-acceptable"),
    headers=("If-None-Match", "Accept"),
)
def list_tensors(run: str, query: TensorsQuery) -> Response:
    """The tensors of a run with their last state."""

    def page_of(
        transaction: Transaction, row: RunRow, after: Sequence[Any] | None, limit: int
    ) -> tuple[Sequence[TensorRow], Sequence[Any] | None]:
        last = after[0] if after else None
        page = queries.tensors(transaction, row, sort=query.sort, after=last, limit=limit, **query.tensors())
        return page.items, None if page.next is None else [page.next]

    return _listed(run, "tensors", query, TensorRow, page_of)


def _full(transaction: Transaction, run: RunRow, no: int) -> queries.TensorFull:
    full = queries.tensor(transaction, run, no) if no < 2**31 else None
    if full is None:
        raise Problem("not-found", f"Run {run.id} has no tensor {no}; it has {run.record.tensors} of them.")
    return full


@blueprint.get("/v1/runs/<run>/tensors/<int:no>")
@query(NoQuery)
@answers(
    {200: Answer(text="The tensor.", model=TensorFull, headers=("ETag",)), 304: _SAME},
    problems=("record-expired",),
    headers=("If-None-Match",),
)
def get_tensor(run: str, no: int) -> Response:
    """One tensor in full: names, snapshots, in-place changes, who saved it, its elements if it is small."""
    with context().database.read() as transaction:
        row = recorded(run_of(transaction, run))
        if same := not_modified(row):
            return same
        full = _full(transaction, row, no)
    return json_reply(queries.as_json(full), headers=cache_headers(row))


@blueprint.get("/v1/runs/<run>/tensors/<int:no>/snapshots")
@query(TensorSnapshotsQuery)
@answers(
    {
        200: Answer(
            text="A page of snapshots, or all of them in another format.",
            model=SnapshotList,
            media=_MEDIA,
            headers=_SENT,
        ),
        304: _SAME,
    },
    problems=("record-expired", "not-acceptable"),
    headers=("If-None-Match", "Accept"),
)
def list_tensor_snapshots(run: str, no: int, query: TensorSnapshotsQuery) -> Response:
    """The snapshots of one tensor, by moment."""
    asked = _wanted(query, "kind", "from_moment", "to_moment")

    def page_of(
        transaction: Transaction, row: RunRow, after: Sequence[Any] | None, limit: int
    ) -> tuple[Sequence[SnapshotRow], Sequence[Any] | None]:
        last = after[0] if after else None
        found = queries.tensor_snapshots(transaction, row, no, after=last, limit=limit + 1, **asked)
        if not found:
            _full(transaction, row, no)
        return found[:limit], [found[limit - 1].moment] if len(found) > limit else None

    return _listed(run, f"tensor {no} snapshots", query, SnapshotRow, page_of)


@blueprint.get("/v1/runs/<run>/snapshots")
@query(SnapshotsQuery)
@answers(
    {
        200: Answer(
            text="A page of snapshots, or all of them in another format.",
            model=SnapshotList,
            media=_MEDIA,
            headers=_SENT,
        ),
        304: _SAME,
    },
    problems=("record-expired", "not-acceptable"),
    headers=("If-None-Match", "Accept"),
)
def list_snapshots(run: str, query: SnapshotsQuery) -> Response:
    """The snapshots of all tensors, by tensor and moment."""
    kinds = query.kind or ()

    def page_of(
        transaction: Transaction, row: RunRow, after: Sequence[Any] | None, limit: int
    ) -> tuple[Sequence[SnapshotRow], Sequence[Any] | None]:
        key = (after[0], after[1]) if after else None
        page = queries.snapshots(transaction, row, kind=kinds, nan=query.nan, after=key, limit=limit, **query.tensors())
        return page.items, page.next

    return _listed(run, "snapshots", query, SnapshotRow, page_of)


@blueprint.get("/v1/runs/<run>/backward-calls")
@query(Page)
@answers(
    {200: Answer(text="A page of backward calls.", model=BackwardCallList, headers=("Link", "ETag")), 304: _SAME},
    problems=("record-expired",),
    headers=("If-None-Match",),
)
def list_backward_calls(run: str, query: Page) -> Response:
    """The backward calls: flags as given and as they took effect, what each ran, freed and left held."""
    with context().database.read() as transaction:
        row = recorded(run_of(transaction, run))
        listing = f"{row.id} backward calls"
        after = after_of(listing, query)
        if same := not_modified(row):
            return same
        found = queries.backward_calls(transaction, row, after=after[0] if after else None, limit=query.limit + 1)
    shown = found[: query.limit]
    following = [shown[-1].call] if len(found) > query.limit else None
    return page_reply(listing, query, queries.as_json(shown), following, cache_headers(row))
