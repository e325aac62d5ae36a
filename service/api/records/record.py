"""What the run saw: its tensors, their snapshots, and the backward calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flask import Response
from pydantic import Field

from service.api.records.exports import BATCH, EXPORTS, MEDIA, export, vary_headers, wanted_format
from service.api.records.moments import moment_at
from service.api.records.tensor_filters import ExportQuery, Kinds, Moment, TensorFilters, TensorsQuery
from service.api.runs.run_json import require_record, run_of
from service.context import context
from service.openapi.document import Answer, Operations, answers
from service.problems.errors import Problem
from service.schemas.responses.runs import (
    BackwardCallList,
    SnapshotList,
    SnapshotRow,
    TensorFull,
    TensorList,
    TensorRow,
)
from service.web.body import Strict, query
from service.web.parameters import Flag, Page
from service.web.reply import cache_headers, json_reply, not_modified, page_reply, read_cursor
from store import queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from store.database.session import Transaction
    from store.runs.model import RunRow

    PageOf = Callable[[Transaction, RunRow, Sequence[Any] | None, int], tuple[Sequence[Any], Sequence[Any] | None]]

blueprint = Operations("record", __name__, tag="What the run saw")

_SAME = Answer(text="Not changed since.")
_ANY_OF = "Any of these, joined by commas."


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


def _list_rows(run: str, what: str, query: ExportQuery, row_type: type[Any], page_of: PageOf) -> Response:
    """Answer with a page of a list below a run, or with all of it in another format.

    Args:
        run: Public id.
        what: Of the run: the list's name.
        query: Format, limit and cursor.
        row_type: The class that describes a row.
        page_of: Rows behind a key, as plain JSON values, and the key of the last one; None at the end.
    """
    form, database = wanted_format(query.format, EXPORTS), context().database
    with database.read() as transaction:
        row = require_record(run_of(transaction, run))
        listing = f"{row.id} {what}"
        after = read_cursor(listing, query)
        headers = vary_headers(cache_headers(row), form)
        if form == "json":
            if same := not_modified(row):
                return same
            items, last = page_of(transaction, row, after, query.limit)
            return page_reply(listing, query, items, last, headers)

    def batches() -> Iterator[Sequence[Any]]:
        key = after
        while True:
            with database.read() as transaction:
                items, key = page_of(transaction, row, key, BATCH)
            yield items
            if key is None:
                return

    return export(f"{row.id}-{what.replace(' ', '-')}", form, row_type, batches(), headers)


def _collect_given(query: Page, *names: str) -> dict[str, Any]:
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
    problems=("record-expired", "not-acceptable", "too-many-streams"),
    headers=("If-None-Match", "Accept"),
)
def list_tensors(run: str, query: TensorsQuery) -> Response:
    """The tensors of a run with their last state, or with that at a moment."""

    def page_of(
        transaction: Transaction, row: RunRow, after: Sequence[Any] | None, limit: int
    ) -> tuple[Sequence[Any], Sequence[Any] | None]:
        last = after[0] if after else None
        if query.at is None:
            told = queries.tensors_told(transaction, row, sort=query.sort, after=last, limit=limit, **query.tensors())
            return told.items, None if told.next is None else [told.next]
        named, moment = query.fields_without_state(), moment_at(transaction, row, query.at)
        page = queries.tensors_at(transaction, row, moment, state=query.then(), after=last, limit=limit, **named)
        return queries.as_json(page.items), None if page.next is None else [page.next]

    return _list_rows(run, "tensors", query, TensorRow, page_of)


def _full(transaction: Transaction, run: RunRow, no: int) -> queries.TensorFull:
    full = queries.tensor(transaction, run, no)
    if full is None:
        raise Problem("not-found", f"Run {run.id} has no tensor {no}.")
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
        row = require_record(run_of(transaction, run))
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
    problems=("record-expired", "not-acceptable", "too-many-streams"),
    headers=("If-None-Match", "Accept"),
)
def list_tensor_snapshots(run: str, no: int, query: TensorSnapshotsQuery) -> Response:
    """The snapshots of one tensor, by moment."""
    asked = _collect_given(query, "kind", "from_moment", "to_moment")

    def page_of(
        transaction: Transaction, row: RunRow, after: Sequence[Any] | None, limit: int
    ) -> tuple[Sequence[Any], Sequence[Any] | None]:
        last = after[0] if after else None
        found = queries.tensor_snapshots(transaction, row, no, after=last, limit=limit + 1, **asked)
        if not found:
            _full(transaction, row, no)
        return queries.as_json(found[:limit]), [found[limit - 1].moment] if len(found) > limit else None

    return _list_rows(run, f"tensor {no} snapshots", query, SnapshotRow, page_of)


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
    problems=("record-expired", "not-acceptable", "too-many-streams"),
    headers=("If-None-Match", "Accept"),
)
def list_snapshots(run: str, query: SnapshotsQuery) -> Response:
    """The snapshots of all tensors, by tensor and moment."""
    kinds = query.kind or ()

    def page_of(
        transaction: Transaction, row: RunRow, after: Sequence[Any] | None, limit: int
    ) -> tuple[Sequence[Any], Sequence[Any] | None]:
        key = (after[0], after[1]) if after else None
        page = queries.snapshots(transaction, row, kind=kinds, nan=query.nan, after=key, limit=limit, **query.tensors())
        return queries.as_json(page.items), page.next

    return _list_rows(run, "snapshots", query, SnapshotRow, page_of)


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
        row = require_record(run_of(transaction, run))
        listing = f"{row.id} backward calls"
        after = read_cursor(listing, query)
        if same := not_modified(row):
            return same
        found = queries.backward_calls(transaction, row, after=after[0] if after else None, limit=query.limit + 1)
    shown = found[: query.limit]
    following = [shown[-1].call] if len(found) > query.limit else None
    return page_reply(listing, query, queries.as_json(shown), following, cache_headers(row))
