"""One statistic of a run's tensors over its moments as rows, by page: what is exported whole, however long the run was.

A page costs a few queries and holds as many values as it has rows; the heatmap of `curves.py` is the bounded answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import sqlalchemy as sa

from store import tables
from store.database.session import Transaction
from store.queries.history.curves import numbers
from store.queries.history.value_series import heatmap
from store.queries.tensors.tensor_filter import TensorFilter
from store.records.reader import at_key
from store.runs.model import RunKey, RunRow

_m: Final = tables.moment
_t: Final = tables.tensor
_FIRST: Final = -1

After = tuple[int, int]
"""Tensor and moment of the last row; the moment `_FIRST`: all of the tensor was told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveRow:
    """One tensor at one moment. `stat` says what `value` is; rows without a value are left out."""

    tensor: int
    name: str | None
    fqn: str | None
    line: int | None
    moment: int
    step: int
    stat: str
    value: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveAsked:
    """Which statistic, at which moments, of which tensors.

    Attributes:
        kind: Of the moments. first_step, last_step: both included.
    """

    stat: str
    kind: str = "after-backward"
    first_step: int = 0
    last_step: int = 2**31 - 1
    tensors: TensorFilter = field(default_factory=TensorFilter)


def curve_rows(
    transaction: Transaction, run: RunRow, asked: CurveAsked, *, after: After | None = None, limit: int = 1000
) -> tuple[list[CurveRow], After | None]:
    """Rows by (tensor, moment) behind a place, at most `limit`, and the place of the next ones; None: that was all.

    Raises:
        KeyError: there is no such statistic.
    """
    key = run.key
    if key is None:
        return [], None
    tensor, moment = after or (_FIRST, _FIRST)
    times = _times(transaction, key, asked, moment, limit + 1)
    if moment != _FIRST:
        here = _select_named_rows(transaction, key, asked, _t.c.tensor == tensor, 1)
        rows = _rows(transaction, run, asked, here, times[:limit])
        return rows, (tensor, times[limit - 1].moment if len(times) > limit else _FIRST)
    at_once = max(1, limit // max(1, len(times)))
    named = _select_named_rows(transaction, key, asked, _t.c.tensor > tensor, at_once + 1)
    if not named or not times:
        return [], None
    rows = _rows(transaction, run, asked, named[:at_once], times[:limit])
    last = named[:at_once][-1].tensor
    if len(times) > limit:
        return rows, (last, times[limit - 1].moment)
    return rows, (last, _FIRST) if len(named) > at_once else None


def _times(transaction: Transaction, key: RunKey, asked: CurveAsked, behind: int, limit: int) -> Sequence[Any]:
    there = (at_key(_m, key), _m.c.kind == asked.kind, _m.c.step.between(asked.first_step, asked.last_step))
    query = sa.select(_m.c.moment, _m.c.step).where(*there, _m.c.moment > behind)
    return transaction.execute(query.order_by(_m.c.moment).limit(limit)).all()


def _select_named_rows(
    transaction: Transaction, key: RunKey, asked: CurveAsked, which: sa.ColumnElement[bool], limit: int
) -> Sequence[Any]:
    query = sa.select(_t.c.tensor, _t.c.name, _t.c.fqn, _t.c.line)
    query = query.where(at_key(_t, key), which, *asked.tensors.conditions(transaction))
    return transaction.execute(query.order_by(_t.c.tensor).limit(limit)).all()


def _rows(
    transaction: Transaction, run: RunRow, asked: CurveAsked, named: Sequence[Any], times: Sequence[Any]
) -> list[CurveRow]:
    found = heatmap(transaction, run, [row.tensor for row in named], [time.moment for time in times], column=asked.stat)
    rows: list[CurveRow] = []
    for row, values in zip(named, found.values, strict=True):
        known: dict[str, Any] = {
            "tensor": row.tensor,
            "name": row.name,
            "fqn": row.fqn,
            "line": row.line,
            "stat": asked.stat,
        }
        rows += [
            CurveRow(**known, moment=time.moment, step=time.step, value=float(value))
            for time, value in zip(times, numbers(values), strict=True)
            if value is not None
        ]
    return rows
