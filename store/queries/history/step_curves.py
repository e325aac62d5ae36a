"""Loss, gradient norm and learning rate over the training steps of a run: as bounded arrays, or row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from backprobe.record.rows.series import Anomaly
from store import tables
from store.database.in_clause import in_numbers
from store.database.session import Transaction
from store.records.reader import at_key
from store.runs.model import RunRow

_s: Final = tables.step
_NUMBERS: Final = (_s.c.loss, _s.c.grad_norm, _s.c.learning_rate)
_LAST: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """One training step, as `backprobe.record.Step` describes it; None: not measured."""

    step: int
    sampled: bool
    loss: float | None
    grad_norm: float | None
    learning_rate: float | None
    anomaly: Anomaly | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCurves:
    """Numbers of a run's steps, as arrays of equal length.

    Attributes:
        steps: Of each value; of a stretch its first. loss, grad_norm, learning_rate: None: not measured.
        count: How many steps there are. exact: a value each; else each value is the peak of its stretch.
    """

    steps: list[int]
    loss: list[float | None]
    grad_norm: list[float | None]
    learning_rate: list[float | None]
    count: int
    exact: bool


_ROW: Final = tuple(_s.c[name] for name in StepRow.__dataclass_fields__)


def step_curves(
    transaction: Transaction, run: RunRow, *, first_step: int = 0, last_step: int = _LAST, points: int = 500
) -> StepCurves:
    """Loss, gradient norm and learning rate over steps, at most `points` values of each.

    Of more steps each value is the peak of a stretch of equal length; NaN counts as above all numbers, so that none
    is lost.
    """
    there = (at_key(_s, run.key), _s.c.step.between(first_step, last_step)) if run.key is not None else (sa.false(),)
    lowest, highest = (sa.select(end(_s.c.step)).where(*there).scalar_subquery() for end in (sa.func.min, sa.func.max))
    first, last = transaction.execute(sa.select(lowest, highest)).one()
    if first is not None and last - first >= points:
        stretch = (_s.c.step - first) // -(-(last - first + 1) // points)
        peaks = sa.select(sa.func.min(_s.c.step), *[sa.func.max(column) for column in _NUMBERS], sa.func.count())
        found: Sequence[Any] = transaction.execute(peaks.where(*there).group_by(stretch).order_by(stretch)).all()
        count = sum(row[-1] for row in found)
        if count > points:
            return _to_curves([row[:-1] for row in found], count, exact=False)
    found = transaction.execute(sa.select(_s.c.step, *_NUMBERS).where(*there).order_by(_s.c.step)).all()
    return _to_curves(found, len(found), exact=True)


def _to_curves(rows: Sequence[Any], count: int, *, exact: bool) -> StepCurves:
    steps, loss, grad_norm, learning_rate = map(list, zip(*rows, strict=True)) if rows else ([], [], [], [])
    return StepCurves(
        steps=steps, loss=loss, grad_norm=grad_norm, learning_rate=learning_rate, count=count, exact=exact
    )


def step_rows(
    transaction: Transaction,
    run: RunRow,
    *,
    first_step: int = 0,
    last_step: int = _LAST,
    limit: int = 1000,
) -> Sequence[StepRow]:
    """Every step from the first one on, at most `limit`."""
    if run.key is None:
        return ()
    query = sa.select(*_ROW).where(at_key(_s, run.key), _s.c.step.between(first_step, last_step))
    rows = transaction.execute(query.order_by(_s.c.step).limit(limit)).mappings()
    return [StepRow(**row) for row in rows]


def steps_at(transaction: Transaction, run: RunRow, numbers: Sequence[int]) -> dict[int, StepRow]:
    """Load the steps with these numbers, by number; those that the record does not have are missing."""
    if run.key is None:
        return {}
    query = sa.select(*_ROW).where(at_key(_s, run.key), in_numbers(_s.c.step, numbers))
    return {row["step"]: StepRow(**row) for row in transaction.execute(query).mappings()}
