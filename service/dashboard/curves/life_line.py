"""The life line of one tensor: the norm of its value and of its gradient over the moments that measured them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from service.dashboard.curves.line_chart import WIDTH, Chart, Line, draw_chart
from store import queries

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from store.database.session import Transaction
    from store.queries import SnapshotRow
    from store.runs.model import RunRow

POINTS: Final = 500

Norm = tuple[int, float | None]
"""A moment and the norm at it; None: there is no gradient then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeChart:
    """One of its norms. marks: x of the moments of changes."""

    chart: Chart
    marks: tuple[str, ...]


def draw_life(
    transaction: Transaction,
    run: RunRow,
    tensor: int,
    snapshots: Sequence[SnapshotRow],
    changes: Iterable[int],
    *,
    is_whole: bool,
) -> tuple[LifeChart, ...]:
    """Draw the norms of a tensor, those that were measured.

    Args:
        transaction: To read by.
        run: Its run.
        tensor: Its number.
        snapshots: Its first ones, in order of moments.
        changes: Moments at which something else of it changed.
        is_whole: These are all of its snapshots; else each point that is drawn is the greatest of a stretch of moments.
    """
    if is_whole:
        lines = [_line("value", 0, _value_norms(snapshots)), _line("gradient", 1, _grad_norms(snapshots))]
    else:
        found = queries.curve(transaction, run, tensor, ["value_norm", "grad_norm"], points=POINTS)
        named = (("value", found.columns["value_norm"]), ("gradient", found.columns["grad_norm"]))
        lines = [
            _line(
                label,
                colour,
                [(moment, None if x is None else float(x)) for moment, x in zip(found.moments, column, strict=True)],
                is_exact=False,
            )
            for colour, (label, column) in enumerate(named)
        ]
    charts = [draw_chart(f"Norm of the {line.label}", [line]) for line in lines]
    return tuple(LifeChart(chart=chart, marks=_marks(chart, changes)) for chart in charts if chart is not None)


def _marks(chart: Chart, changes: Iterable[int]) -> tuple[str, ...]:
    width = chart.last - chart.first
    inside = [moment - chart.first for moment in changes if width and chart.first <= moment <= chart.last]
    return tuple(f"{WIDTH * past / width:.6g}" for past in inside)


def _value_norms(snapshots: Sequence[SnapshotRow]) -> list[Norm]:
    """List the norms of the value; where it was not measured, the one before still holds."""
    return [(row.moment, row.value.norm) for row in snapshots if row.value is not None]


def _grad_norms(snapshots: Sequence[SnapshotRow]) -> list[Norm]:
    """List the norms of the gradient, likewise; where there is none, the line is broken."""
    norms: list[Norm] = []
    for row in snapshots:
        if row.grad != "present":
            norms.append((row.moment, None))
        elif row.grad_stats is not None:
            norms.append((row.moment, row.grad_stats.norm))
    return norms


def _line(label: str, colour: int, norms: Sequence[Norm], *, is_exact: bool = True) -> Line:
    return Line(
        label=label,
        colour=colour,
        is_other=False,
        steps=[moment for moment, _ in norms],
        values=[norm for _, norm in norms],
        kind="exact" if is_exact else "peaks",
        unit="moment",
    )
