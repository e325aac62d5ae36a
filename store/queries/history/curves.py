"""The history of tensors as the API tells it: bounded, and as JSON takes it. `value_series.py` reads the chunks.

1. A number that was not captured is None, one that is not finite is its word: here NaN is the message.
2. Above a bound nothing is read: `TooMuch` says how much there is.
3. Where points are asked for, each is the peak of its bucket, so that a spike of one moment is never lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import sqlalchemy as sa

from store import tables
from store.database.session import Transaction
from store.queries.history.value_series import Array, heatmap, series
from store.queries.tensors.tensor_filter import TensorFilter
from store.records.chunk_format import COLUMNS, GRAD_MEASURED, MISSING, VALUE_MEASURED
from store.records.reader import at_key
from store.runs.model import RunKey, RunRow

FLOATS: Final = tuple(name for name, column in COLUMNS.items() if column.dtype == "<f4")
COUNTS: Final = tuple(f"{of}_{what}" for of in ("value", "grad") for what in ("nan", "inf", "zeros"))
SERIES: Final = (*FLOATS, *COUNTS, "version")
"""Columns that can be asked for."""

MOST_VALUES: Final = 200_000
"""In one answer: 1 MB of JSON, 0.1 s of a core."""

MOST_ROWS: Final = 500
"""Of a heatmap."""

_c: Final = tables.snapshot_chunk
_m: Final = tables.moment
_t: Final = tables.tensor
Number = float | int | str | None


class TooMuch(Exception):
    """The answer would be too large; the message says how much there is. The caller asks for less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Columns of one tensor's snapshots by moment.

    Attributes:
        moments, steps: Of each value; of a bucket its first. columns: by name, as long as these.
        snapshots: How many there are. exact: a value each; else each value is the peak of a bucket.
    """

    tensor: int
    moments: list[int]
    steps: list[int]
    columns: Mapping[str, list[Number]]
    snapshots: int
    exact: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatRow:
    """One tensor of a heatmap; a value for each of its moments."""

    tensor: int
    name: str | None
    fqn: str | None
    line: int | None
    values: list[Number]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heatmap:
    """A statistic of some tensors over the moments of a run.

    Attributes:
        moments, steps: One per column. rows: in order of the tensors' numbers.
        exact: All moments of that kind are columns; else they are spread evenly.
    """

    stat: str
    kind: str
    moments: list[int]
    steps: list[int]
    rows: list[HeatRow]
    exact: bool


def numbers(values: Array, known: Array | None = None) -> list[Number]:
    """Convert an array to numbers that JSON takes.

    Args:
        values: float32, where the bits of `MISSING` are None; or integers.
        known: Where it is false the value was not captured; None: by the bits alone.
    """
    told: list[Number] = values.astype("<f8").tolist() if values.dtype == np.float32 else values.tolist()
    odd: Array = np.zeros(len(values), bool)
    missing = odd if known is None else ~known
    if values.dtype == np.float32:
        odd = ~np.isfinite(values)
        missing = missing | (values.view("<u4") == MISSING)
    for place in np.flatnonzero(odd | missing):
        value = float(values[place])
        word = "NaN" if np.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        told[place] = None if missing[place] else word
    return told


def curve(
    transaction: Transaction,
    run: RunRow,
    tensor: int,
    columns: Sequence[str],
    *,
    from_moment: int = 0,
    to_moment: int = 2**31 - 1,
    points: int | None = None,
) -> Series:
    """Columns of one tensor's snapshots, all of them or so many peaks.

    Raises:
        TooMuch: more than `MOST_VALUES`.
        KeyError: there is no such column.
    """
    nothing = Series(tensor=tensor, moments=[], steps=[], columns={n: [] for n in columns}, snapshots=0, exact=True)
    if run.key is None:
        return nothing
    told = min(_snapshots(transaction, run.key, tensor, from_moment, to_moment), points or 2**31) * len(columns)
    if told > MOST_VALUES:
        raise TooMuch(f"{told:,} values, at most {MOST_VALUES:,} at once: ask for fewer moments or for `points`")
    wanted = list(dict.fromkeys(("flags", *columns)))
    found = series(transaction, run, tensor, wanted, from_moment=from_moment, to_moment=to_moment)
    count = len(found["moment"])
    if not count:
        return nothing
    cuts = None if points is None or count <= points else np.linspace(0, count, points + 1).astype(int)[:-1]
    moments = found["moment"] if cuts is None else found["moment"][cuts]
    return Series(
        tensor=tensor,
        moments=moments.tolist(),
        steps=_steps(transaction, run.key, moments),
        columns={name: _column_to_numbers(name, found, cuts) for name in columns},
        snapshots=count,
        exact=cuts is None,
    )


def _snapshots(transaction: Transaction, key: RunKey, tensor: int, first: int, last: int) -> int:
    """How many there are, chunks at the ends counted whole."""
    there = (at_key(_c, key), _c.c.tensor == tensor, _c.c.last_moment >= first, _c.c.first_moment <= last)
    return transaction.execute(sa.select(sa.func.coalesce(sa.func.sum(_c.c.n), 0)).where(*there)).scalar_one()


def _column_to_numbers(name: str, found: Mapping[str, Array], cuts: Array | None) -> list[Number]:
    values, known = found[name], None
    if name in COUNTS:
        known = (found["flags"] & (VALUE_MEASURED if name.startswith("value") else GRAD_MEASURED)) != 0
    elif name == "version":
        known = values >= 0
    if cuts is None:
        return numbers(values, known)
    if values.dtype != np.float32:
        known = np.ones(len(values), bool) if known is None else known
        return numbers(np.maximum.reduceat(np.where(known, values, -1), cuts), np.logical_or.reduceat(known, cuts))
    missing = values.view("<u4") == MISSING
    least = name.endswith("_min")
    peak = (np.fmin if least else np.fmax).reduceat(values, cuts)
    odd = np.logical_or.reduceat(np.isnan(values) & ~missing, cuts)
    peak[odd] = np.nan
    return numbers(peak, ~np.logical_and.reduceat(missing, cuts))


def _steps(transaction: Transaction, key: RunKey, moments: Array) -> list[int]:
    """Return the step of each moment. The moments ascend."""
    span = _m.c.moment.between(int(moments[0]), int(moments[-1]))
    rows = transaction.execute(sa.select(_m.c.moment, _m.c.step).where(at_key(_m, key), span).order_by(_m.c.moment))
    known = dict(tuple(row) for row in rows)
    return [known.get(int(moment), 0) for moment in moments]


def heat(
    transaction: Transaction,
    run: RunRow,
    stat: str,
    *,
    kind: str = "after-backward",
    first_step: int = 0,
    last_step: int = 2**31 - 1,
    points: int = 500,
    tensors: TensorFilter = TensorFilter(),  # noqa: B008 - frozen
) -> Heatmap:
    """One statistic of the tensors that pass, at the moments of one kind, at most `points` of them.

    Raises:
        TooMuch: more than `MOST_ROWS` tensors, or `MOST_VALUES`.
        KeyError: there is no such statistic.
    """
    if run.key is None:
        return Heatmap(stat=stat, kind=kind, moments=[], steps=[], rows=[], exact=True)
    chosen = (at_key(_t, run.key), *tensors.conditions(transaction))
    total = transaction.execute(sa.select(sa.func.count()).select_from(_t).where(*chosen)).scalar_one()
    there = (at_key(_m, run.key), _m.c.kind == kind, _m.c.step.between(first_step, last_step))
    times: list[Any] = list(transaction.execute(sa.select(_m.c.moment, _m.c.step).where(*there).order_by(_m.c.moment)))
    shown = min(len(times), points)
    if total > MOST_ROWS or total * shown > MOST_VALUES:
        said = (
            f"{total:,} tensors at {shown:,} moments; "
            f"at most {MOST_ROWS} tensors and {MOST_VALUES:,} values are returned at once"
        )
        raise TooMuch(f"{said}: ask for fewer tensors, steps or `points`")
    kept: list[int] = np.linspace(0, len(times) - 1, shown).round().astype(int).tolist() if times else []
    query = sa.select(_t.c.tensor, _t.c.name, _t.c.fqn, _t.c.line).where(*chosen).order_by(_t.c.tensor)
    named: list[Any] = list(transaction.execute(query))
    moments = [times[n].moment for n in kept]
    found = heatmap(transaction, run, [row.tensor for row in named], moments, column=stat)
    return Heatmap(
        stat=stat,
        kind=kind,
        moments=moments,
        steps=[times[n].step for n in kept],
        rows=[_heat_row(row, values) for row, values in zip(named, found.values, strict=True)],
        exact=shown == len(times),
    )


def _heat_row(row: Any, values: Array) -> HeatRow:
    return HeatRow(tensor=row.tensor, name=row.name, fqn=row.fqn, line=row.line, values=numbers(values))
