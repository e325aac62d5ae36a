"""The section "Curves" of a run's page: what is drawn, of which runs, and the numbers of a few steps as a table."""

from __future__ import annotations

import importlib.util
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from service.api.records.history import Stat
from service.api.runs.run_json import run_of
from service.api.runs.runs import RunsQuery, runs_page
from service.context import context
from service.dashboard.curves.line_chart import COLOURS, Chart, Line, draw_chart
from service.dashboard.words import RECORDED, ago, name, program_name
from service.problems.errors import Problem
from store import queries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from backprobe.record.rows.events import MomentKind
    from store.database.session import Transaction
    from store.queries import Heatmap, HeatRow, StepCurves, StepRow
    from store.runs.model import RunRow

POINTS: Final = 500
"""Of a line at most, with scripts and without."""

MOST_ROWS: Final = 12
"""Of the table, spread evenly over the steps."""

MOST_RECENT: Final = 12
"""Other runs that are offered."""

STATS: Final[Mapping[Stat, str]] = {
    "grad_norm": "norm of the gradient",
    "grad_sum": "sum of the gradient",
    "grad_min": "least element of the gradient",
    "grad_max": "greatest element of the gradient",
    "value_norm": "norm of the value",
    "value_sum": "sum of the value",
    "value_min": "least element of the value",
    "value_max": "greatest element of the value",
}


_KINDS: Final[Mapping[str, tuple[MomentKind, ...]]] = {
    "grad": ("after-backward",),
    "value": ("optimizer-step", "after-statement"),
}
"""Where statistics are taken: parameters change at optimizer steps, all other values are made by a statement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvesAsked:
    """What to draw: a statistic of the tensors whose names match a glob, and the run to draw over it."""

    stat: Stat = "grad_norm"
    name: str | None = None
    other: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCells:
    """One step of the table; None: that run has not measured it, or has no such step."""

    step: int
    loss: float | None
    grad_norm: float | None
    other_loss: float | None
    other_grad_norm: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvesShown:
    """The section.

    Attributes:
        asked: What the form shows. other: the run that is drawn over this one; None: none.
        count: How many training steps there are. can_draw: there is something over steps, or there will be.
        notes: What is left out, or could not be read, in sentences.
        exports: Files with every number: (words, address). kind: of the moments at which tensors are drawn.
    """

    asked: CurvesAsked
    other: RunRow | None
    count: int
    can_draw: bool
    charts: tuple[Chart, ...]
    rows: tuple[StepCells, ...]
    notes: tuple[str, ...]
    exports: tuple[tuple[str, str], ...]
    stats: Mapping[Stat, str]
    kind: MomentKind


def load_curves(transaction: Transaction, run: RunRow, asked: CurvesAsked) -> CurvesShown:
    """Read what the section draws."""
    notes: list[str] = []
    other = _load_other(transaction, run, asked, notes)
    runs = [run] if other is None else [run, other]
    curves = [context().curves.load(transaction, each, POINTS) for each in runs]
    chart, kind = _draw_tensors(transaction, runs, asked, notes)
    charts = [
        draw_chart("Loss", _lines(curves, runs, "loss")),
        draw_chart("Gradient norm of all parameters", _lines(curves, runs, "grad_norm")),
        chart,
    ]
    if any(not found.exact for found in curves):
        notes.append(f"Of a run with more than {POINTS} steps each point is the greatest value of a stretch of steps.")
    return CurvesShown(
        asked=asked,
        other=other,
        count=curves[0].count,
        can_draw=bool(curves[0].count) or run.record.backward_calls > 1 or not run.ended,
        charts=tuple(chart for chart in charts if chart is not None),
        rows=_table(transaction, runs, curves[0].steps),
        notes=tuple(notes),
        exports=tuple(_exports(run, asked, kind)),
        stats=STATS,
        kind=kind,
    )


def recent_runs(run: RunRow) -> list[tuple[str, str]]:
    """List runs that may be drawn over this one, newest first: (id, words)."""
    page, _ = runs_page("page curves", RunsQuery(limit=MOST_RECENT))
    return [
        (each.id, f"{name(program_name(each))}, {each.status}, {ago(each.created_at)}")
        for each in page
        if each.id != run.id and each.record.state in RECORDED
    ]


def _load_other(transaction: Transaction, run: RunRow, asked: CurvesAsked, notes: list[str]) -> RunRow | None:
    if asked.other is None:
        return None
    try:
        other = run_of(transaction, asked.other)
    except Problem as problem:
        notes.append(problem.detail)
        return None
    if other.id == run.id:
        notes.append("The run cannot be drawn over itself. Choose another one.")
        return None
    if other.record.state not in RECORDED:
        notes.append(f"Run {other.id} has no record that can be read.")
        return None
    return other


def _run_words(at: int, runs: Sequence[RunRow]) -> str:
    return "this run" if at == 0 else f"run …{runs[at].id[-6:]}"


def _lines(curves: Sequence[StepCurves], runs: Sequence[RunRow], column: str) -> list[Line]:
    return [
        Line(
            label=_run_words(at, runs),
            colour=at,
            is_other=at > 0,
            steps=found.steps,
            values=getattr(found, column),
            kind="exact" if found.exact else "peaks",
        )
        for at, found in enumerate(curves)
    ]


def _draw_tensors(
    transaction: Transaction, runs: Sequence[RunRow], asked: CurvesAsked, notes: list[str]
) -> tuple[Chart | None, MomentKind]:
    """Draw one statistic of the tensors that match, those of one name as one line; and say at which moments it is."""
    kinds = _KINDS["grad" if asked.stat.startswith("grad") else "value"]
    if asked.name is None:
        return None, kinds[0]
    chosen = queries.TensorFilter(name=asked.name)
    for kind in kinds:
        try:
            found = [
                queries.heat(transaction, run, asked.stat, kind=kind, points=POINTS, tensors=chosen) for run in runs
            ]
        except queries.TooMuch as error:
            notes.append(f"{name(asked.name)}: {error}.")
            return None, kind
        chart = draw_chart(f"{STATS[asked.stat].capitalize()}: {name(asked.name)}", _lines_of_tensors(found, runs))
        if chart is not None:
            matched = len({_name_of(row) for row in found[0].rows})
            if matched > COLOURS:
                notes.append(f"{name(asked.name)} matches {matched} names; the first {COLOURS} are drawn.")
            if not all(heat.exact for heat in found):
                notes.append(f"The tensors are drawn at {POINTS} moments, spread evenly; CSV has every moment.")
            return chart, kind
    notes.append(f"No {STATS[asked.stat]} was recorded for {name(asked.name)}.")
    return None, kinds[0]


def _lines_of_tensors(found: Sequence[Heatmap], runs: Sequence[RunRow]) -> list[Line]:
    lines: list[Line] = []
    colours = {label: number for number, label in enumerate(list(_values_by_name(found[0]))[:COLOURS])}
    for at, heat in enumerate(found):
        named = _values_by_name(heat)
        for label, colour in colours.items():
            if label in named:
                lines.append(
                    Line(
                        label=name(label) if len(runs) == 1 else f"{name(label)}, {_run_words(at, runs)}",
                        colour=colour,
                        is_other=at > 0,
                        steps=list(named[label]),
                        values=list(named[label].values()),
                        kind="exact" if heat.exact else "samples",
                    )
                )
    return lines


def _name_of(row: HeatRow) -> str:
    return row.fqn or row.name or f"tensor {row.tensor}"


def _values_by_name(heat: Heatmap) -> dict[str, dict[int, float | None]]:
    """Collect the values over steps by tensor name: a name that is bound again at each step is one line.

    Of several values of a step the last one counts, unless one before it is not finite.
    """
    named: dict[str, dict[int, float | None]] = {}
    for row in heat.rows:
        values = named.setdefault(_name_of(row), dict.fromkeys(heat.steps))
        for step, value in zip(heat.steps, row.values, strict=True):
            before = values[step]
            if value is not None and (before is None or math.isfinite(before)):
                values[step] = float(value)
    return named


def _table(transaction: Transaction, runs: Sequence[RunRow], steps: Sequence[int]) -> tuple[StepCells, ...]:
    """Load the numbers of both runs at a few steps of the first one, exactly as recorded."""
    shown = min(len(steps), MOST_ROWS)
    if not shown:
        return ()
    numbers = [steps[place * (len(steps) - 1) // max(1, shown - 1)] for place in range(shown)]
    this = queries.steps_at(transaction, runs[0], numbers)
    other: dict[int, StepRow] = queries.steps_at(transaction, runs[1], numbers) if len(runs) > 1 else {}
    return tuple(_cells(this[step], other.get(step)) for step in numbers if step in this)


def _cells(this: StepRow, other: StepRow | None) -> StepCells:
    return StepCells(
        step=this.step,
        loss=this.loss,
        grad_norm=this.grad_norm,
        other_loss=None if other is None else other.loss,
        other_grad_norm=None if other is None else other.grad_norm,
    )


def _exports(run: RunRow, asked: CurvesAsked, kind: MomentKind) -> list[tuple[str, str]]:
    """Addresses of the public API; Parquet where the server can write it."""
    forms = ["csv", *(["parquet"] if importlib.util.find_spec("pyarrow") is not None else [])]
    words = {"csv": "CSV", "parquet": "Parquet"}
    found = [(f"{words[form]}, all steps", f"/v1/runs/{run.id}/steps?format={form}") for form in forms]
    if asked.name is not None:
        chosen: dict[str, Any] = {"stat": asked.stat, "kind": kind, "name": asked.name}
        address = f"/v1/runs/{run.id}/series"
        found += [
            (f"{words[form]}, these tensors", f"{address}?{urlencode({**chosen, 'format': form})}") for form in forms
        ]
    return found
