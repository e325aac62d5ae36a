"""The history of a run's tensors as arrays: series, heatmaps, the state at a moment. Read from chunks only.

1. No answer here is a value per row: a run may have 1e8 snapshots. What comes back are arrays, or a few numbers.
2. Filters and top lists are answered by the summary columns, before any bytes are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from store import tables
from store.database.in_clause import in_numbers
from store.database.session import Transaction
from store.records.chunk_encoding import HEAD, Columns, columns_of, unpack
from store.records.chunk_format import COLUMNS, GRAD_NONE, MISSING, REQUIRES_GRAD
from store.records.reader import at_key, mappings
from store.runs.model import RunRow

_c: Final = tables.snapshot_chunk
_t: Final = tables.tensor
_PLACE: Final = (*HEAD, "moments")

_MISSING: Final = np.array([MISSING], "<u4").view("<f4")[0]

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heat:
    """A statistic of some tensors over the moments of a run.

    Attributes:
        tensors: One per row. moments: one per column, shape ``[points]``.
        values: float32, shape ``[tensors, points]``; the bits of `MISSING`: the tensor has no snapshot then, or the
            statistic is none.
    """

    tensors: tuple[int, ...]
    moments: Array
    values: Array


def series(
    transaction: Transaction,
    run: RunRow,
    tensor: int,
    columns: Sequence[str],
    *,
    from_moment: int = 0,
    to_moment: int = 2**31 - 1,
) -> Columns:
    """Columns of one tensor's snapshots by moment, as `store.records.chunk_format.COLUMNS` names them.

    Returns:
        `tensor`, `moment` and the columns, arrays of equal length; empty if there is no snapshot.

    Raises:
        KeyError: there is no such column.
    """
    wanted = [COLUMNS[name] and name for name in columns]
    nothing: Columns = {name: np.empty(0, "<i4") for name in ("tensor", "moment", *wanted)}
    if run.key is None:
        return nothing
    query = (
        sa.select(*[_c.c[name] for name in (*_PLACE, *wanted)])
        .where(at_key(_c, run.key), _c.c.tensor == tensor)
        .where(_c.c.last_moment >= from_moment, _c.c.first_moment <= to_moment)
        .order_by(_c.c.first_moment)
    )
    rows = mappings(transaction.execute(query))
    if not rows:
        return nothing
    found = columns_of(rows)
    moment = found["moment"]
    begin, end = np.searchsorted(moment, [from_moment, to_moment + 1])
    return {name: values[begin:end] for name, values in found.items()}


def tensors_without_grad(transaction: Transaction, run: RunRow) -> tuple[int, ...]:
    """Tensors that required a gradient and had none in some snapshot, by number."""
    if run.key is None:
        return ()
    both = _c.c.flags_or.op("&")(GRAD_NONE | REQUIRES_GRAD) == (GRAD_NONE | REQUIRES_GRAD)
    query = sa.select(_c.c.tensor).where(at_key(_c, run.key), both).distinct().order_by(_c.c.tensor)
    return tuple(transaction.execute(query).scalars())


def heatmap(
    transaction: Transaction,
    run: RunRow,
    tensors: Sequence[int],
    moments: Sequence[int],
    *,
    column: str = "grad_norm",
) -> Heat:
    """Sample a float column of some tensors exactly at some moments, which ascend."""
    points = np.asarray(moments, "<i4")
    values = np.full((len(tensors), len(points)), MISSING, "<u4").view("<f4")
    heat = Heat(tensors=tuple(tensors), moments=points, values=values)
    if run.key is None or not len(points) or not tensors:
        return heat
    names = ("tensor", "first_moment", "last_moment", "n", "moment_step", "moments", column)
    query = sa.select(*[_c.c[name] for name in names]).where(at_key(_c, run.key), in_numbers(_c.c.tensor, tensors))
    query = query.where(_c.c.last_moment >= int(points[0]), _c.c.first_moment <= int(points[-1]))
    place = {tensor: n for n, tensor in enumerate(tensors)}
    alike: dict[tuple[Any, ...], tuple[list[int], list[bytes]]] = {}
    answers = cast("Iterable[Any]", transaction.execute(query).all())
    for tensor, first, last, n, step, listed, stored in answers:
        if stored is not None:
            rows, columns = alike.setdefault((first, last, n, step, listed, len(stored)), ([], []))
            rows.append(place[tensor])
            columns.append(stored)
    for (first, last, n, step, listed, _), (rows, columns) in alike.items():
        begin, end = np.searchsorted(points, [first, last + 1]).tolist()
        if begin < end:
            at, hit = _places(points[begin:end], first, n, step, listed)
            kept = np.frombuffer(b"".join(columns), "<f4").reshape(len(rows), -1)
            found = kept[:, at * hit] if kept.shape[1] > 1 else np.broadcast_to(kept, (len(rows), end - begin))
            values[rows, begin:end] = np.where(hit, found, _MISSING)
    return heat


def _places(asked: Array, first: int, n: int, step: int, listed: bytes | None) -> tuple[Array, Array]:
    """Where in a chunk each of the moments is, and whether it is there."""
    if step:
        at, rest = np.divmod(asked - first, step)
        return at, rest == 0
    there = np.frombuffer(listed or b"", "<i4")
    at = np.searchsorted(there, asked)
    return at, there[np.minimum(at, n - 1)] == asked


def state_at(
    transaction: Transaction,
    run: RunRow,
    moment: int,
    columns: Sequence[str] = ("flags", "version", "value_norm", "grad_norm"),
    tensors: Sequence[int] | None = None,
) -> Columns:
    """Each tensor's last snapshot at or before a moment: `tensor`, `moment` and the columns, one element per tensor.

    Only of `tensors`, if they are given. The database picks the element out of a chunk's bytes, so that 500 tensors
    cost 500 elements and not 500 columns.

    Raises:
        KeyError: there is no such column.
    """
    wanted = {name: COLUMNS[name] for name in columns}
    empty: Columns = {name: np.empty(0, "<i4") for name in ("tensor", "moment", *wanted)}
    if run.key is None:
        return empty
    before: Any = _c.alias("before")
    newest = (
        sa.select(sa.func.max(before.c.first_moment))
        .where(at_key(before, run.key), before.c.tensor == _t.c.tensor, before.c.first_moment <= moment)
        .correlate(_t)
        .scalar_subquery()
    )
    asked: sa.ColumnElement[int] = sa.literal_column(str(int(moment)), sa.Integer())
    back = sa.case((_c.c.last_moment <= asked, _c.c.n - 1), else_=(asked - _c.c.first_moment) // _place_step())
    picked = [
        _pick_element(_c.c[name], np.dtype(column.dtype).itemsize, back).label(name) for name, column in wanted.items()
    ]
    query = (
        sa.select(*[_c.c[name] for name in _PLACE], back.label("place"), *picked)
        .select_from(_t)
        .join(_c, sa.and_(at_key(_c, run.key), _c.c.tensor == _t.c.tensor, _c.c.first_moment == newest))
        .where(at_key(_t, run.key))
        .order_by(_t.c.tensor)
    )
    if tensors is not None:
        query = query.where(in_numbers(_t.c.tensor, tensors))
    rows = mappings(transaction.execute(query))
    if not rows:
        return empty
    return _states(rows, moment, columns)


def _place_step() -> sa.ColumnElement[int]:
    """`moment_step`, or 1 where moments are listed: then the whole column is read and this is not used."""
    return sa.case((_c.c.moment_step > 0, _c.c.moment_step), else_=1)


def _pick_element(column: sa.ColumnElement[Any], width: int, place: sa.ColumnElement[int]) -> sa.ColumnElement[Any]:
    """One element of a column that has several; the column itself where it is constant, or moments have gaps."""
    whole = sa.or_(_c.c.moment_step == 0, sa.func.length(column) <= width)
    element = sa.func.substr(column, sa.cast(place, sa.Integer) * width + 1, width, type_=sa.LargeBinary())
    return sa.case((whole, column), else_=element)


def _states(rows: Sequence[Mapping[str, Any]], moment: int, columns: Sequence[str]) -> Columns:
    tensor, first, step, place, version_step = (
        np.array([int(row[name]) for row in rows], "<i8")
        for name in ("tensor", "first_moment", "moment_step", "place", "version_step")
    )
    moments = first + step * place
    listed = {n: np.frombuffer(rows[n]["moments"], "<i4") for n in np.flatnonzero(step == 0).tolist()}
    for n, there in listed.items():
        place[n] = np.searchsorted(there, moment, side="right") - 1
        moments[n] = there[place[n]]
    found: dict[str, Array] = {}
    for name in columns:
        column = COLUMNS[name]
        nothing = unpack(None, 1, column.dtype, column.absent).tobytes()
        stored = [row[name] or nothing for row in rows]
        for n in listed:  # the database did not pick these
            stored[n] = unpack(rows[n][name], rows[n]["n"], column.dtype, column.absent)[
                place[n] : place[n] + 1
            ].tobytes()
        values = np.frombuffer(b"".join(stored), column.dtype)
        found[name] = (values + version_step * place).astype(column.dtype) if name == "version" else values
    return {"tensor": tensor.astype("<i4"), "moment": moments.astype("<i4"), **found}
