"""The history of a run's tensors as arrays: series, heatmaps, peaks, the state at a moment. Read from chunks only.

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
from store.chunks import HEAD, Columns, columns_of, unpack
from store.layout import BLOCK, COLUMNS, GRAD_NONE, MISSING, REQUIRES_GRAD
from store.record_load import at_key, mappings
from store.run import RunKey, RunRow
from store.session import Transaction

_c: Final = tables.snapshot_chunk
_t: Final = tables.tensor
_PLACE: Final = (*HEAD, "moments")

_MISSING: Final = np.array([MISSING], "<u4").view("<f4")[0]

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """One of the highest gradient norms of a run.

    Attributes:
        moment: The first moment of the tensor at which its gradient had this norm.
    """

    tensor: int
    moment: int
    grad_norm: float


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
    """Columns of one tensor's snapshots by moment, as `store.layout.COLUMNS` names them.

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


def top(transaction: Transaction, run: RunRow, *, limit: int = 20) -> tuple[Peak, ...]:
    """The tensors with the highest gradient norm ever measured, highest first, each with where that was."""
    if run.key is None:
        return ()
    highest = sa.func.max(_c.c.grad_norm_max)
    query = (
        sa.select(_c.c.tensor, highest.label("highest"))
        .where(at_key(_c, run.key), _c.c.grad_norm_max.is_not(None))
        .group_by(_c.c.tensor)
        .order_by(highest.desc(), _c.c.tensor)
        .limit(limit)
    )
    return tuple(_peak(transaction, run.key, row.tensor, row.highest) for row in transaction.execute(query).all())


def _peak(transaction: Transaction, key: RunKey, tensor: int, highest: float) -> Peak:
    query = (
        sa.select(*[_c.c[name] for name in (*_PLACE, "grad_norm")])
        .where(at_key(_c, key), _c.c.tensor == tensor, _c.c.grad_norm_max >= highest)
        .order_by(_c.c.first_moment)
        .limit(1)
    )
    found = columns_of(mappings(transaction.execute(query)))
    place = int(np.nanargmax(found["grad_norm"]))
    return Peak(tensor=tensor, moment=int(found["moment"][place]), grad_norm=float(found["grad_norm"][place]))


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
    """A float column of some tensors, sampled exactly at some moments (ascending)."""
    points = np.asarray(moments, "<i4")
    values = np.full((len(tensors), len(points)), MISSING, "<u4").view("<f4")
    heat = Heat(tensors=tuple(tensors), moments=points, values=values)
    if run.key is None or not len(points) or not tensors:
        return heat
    names = ("tensor", "first_moment", "last_moment", "n", "moment_step", "moments", column)
    query = sa.select(*[_c.c[name] for name in names]).where(at_key(_c, run.key), _c.c.tensor.in_(tensors))
    query = query.where(_c.c.last_moment >= int(points[0]), _c.c.first_moment <= int(points[-1]))
    place = {tensor: n for n, tensor in enumerate(tensors)}
    bounds: dict[tuple[int, int], tuple[int, int]] = {}
    answers = cast("Iterable[Any]", transaction.execute(query))
    for tensor, first, last, n, step, listed, stored in answers:
        if stored is None:
            continue
        span = bounds.get((first, last))
        if span is None:
            span = bounds[first, last] = tuple(np.searchsorted(points, [first, last + 1]).tolist())  # type: ignore[assignment]  # two numbers
        begin, end = span
        if begin == end:
            continue
        asked = points[begin:end]
        if step:
            at, rest = np.divmod(asked - first, step)
            hit = rest == 0
        else:
            there = np.frombuffer(listed, "<i4")
            at = np.searchsorted(there, asked)
            hit = there[np.minimum(at, n - 1)] == asked
        kept = np.frombuffer(stored, "<f4")
        found = kept[at * hit] if len(kept) > 1 else np.full(len(asked), kept[0], "<f4")
        values[place[tensor], begin:end] = np.where(hit, found, _MISSING)
    return heat


def peaks(transaction: Transaction, run: RunRow, tensors: Sequence[int]) -> Mapping[int, tuple[Array, Array]]:
    """Of each tensor the highest gradient norm of every 16 snapshots: first moments and norms, of equal length.

    It reads a sixteenth of what `series` would. The place of a block whose moments have gaps is that of its chunk.
    """
    if run.key is None:
        return {}
    names = ("tensor", "first_moment", "moment_step", "grad_norm_max", "overview")
    query = (
        sa.select(*[_c.c[name] for name in names])
        .where(at_key(_c, run.key), _c.c.tensor.in_(tensors), _c.c.grad_norm_max.is_not(None))
        .order_by(_c.c.tensor, _c.c.first_moment)
    )
    pieces: dict[int, list[tuple[Array, Array]]] = {}
    answers = cast("Iterable[Any]", transaction.execute(query))
    for tensor, first, step, highest, overview in answers:
        norms = np.array([highest], "<f4") if overview is None else np.frombuffer(overview, "<f4")
        places = first + step * BLOCK * np.arange(len(norms), dtype="<i8")
        pieces.setdefault(tensor, []).append((places, norms))
    return {
        tensor: (np.concatenate([p for p, _ in some]), np.concatenate([v for _, v in some]))
        for tensor, some in pieces.items()
    }


def state_at(
    transaction: Transaction,
    run: RunRow,
    moment: int,
    columns: Sequence[str] = ("flags", "version", "value_norm", "grad_norm"),
) -> Columns:
    """Each tensor's last snapshot at or before a moment: `tensor`, `moment` and the columns, one element per tensor.

    The database picks the element out of a chunk's bytes, so that 500 tensors cost 500 elements and not 500 columns.

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
    picked = [_picked(_c.c[name], np.dtype(column.dtype).itemsize, back).label(name) for name, column in wanted.items()]
    query = (
        sa.select(*[_c.c[name] for name in _PLACE], back.label("place"), *picked)
        .select_from(_t)
        .join(_c, sa.and_(at_key(_c, run.key), _c.c.tensor == _t.c.tensor, _c.c.first_moment == newest))
        .where(at_key(_t, run.key))
        .order_by(_t.c.tensor)
    )
    rows = mappings(transaction.execute(query))
    if not rows:
        return empty
    return _states(rows, moment, columns)


def _place_step() -> sa.ColumnElement[int]:
    """`moment_step`, or 1 where moments are listed: then the whole column is read and this is not used."""
    return sa.case((_c.c.moment_step > 0, _c.c.moment_step), else_=1)


def _picked(column: sa.ColumnElement[Any], width: int, place: sa.ColumnElement[int]) -> sa.ColumnElement[Any]:
    """One element of a column that has several; the column itself where it is constant, or moments have gaps."""
    whole = sa.or_(_c.c.moment_step == 0, sa.func.length(column) <= width)
    element = sa.func.substr(column, sa.cast(place, sa.Integer) * width + 1, width, type_=sa.LargeBinary())
    return sa.case((whole, column), else_=element)


def _states(rows: Sequence[Mapping[str, Any]], moment: int, columns: Sequence[str]) -> Columns:
    places: list[int] = []
    moments: list[int] = []
    found: dict[str, list[Any]] = {name: [] for name in columns}
    for row in rows:
        n, step, gaps = row["n"], row["moment_step"], None
        place = int(row["place"])
        if not step:
            gaps = np.frombuffer(row["moments"], "<i4")
            place = int(np.searchsorted(gaps, moment, side="right")) - 1
        places.append(place)
        moments.append(int(gaps[place]) if gaps is not None else row["first_moment"] + step * place)
        for name in columns:
            column = COLUMNS[name]
            if gaps is None:
                value = unpack(row[name], 1, column.dtype, column.absent)[0]
            else:
                value = unpack(row[name], n, column.dtype, column.absent)[place]
            found[name].append(value + row["version_step"] * place if name == "version" else value)
    arrays: Columns = {name: np.array(values, COLUMNS[name].dtype) for name, values in found.items()}
    return {
        "tensor": np.array([row["tensor"] for row in rows], "<i4"),
        "moment": np.array(moments, "<i4"),
        **arrays,
    }
