"""What the check of gradients saw of a run: its rows, with the names of their tensors and the lines of their causes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from backprobe.record import GradientCheck
from backprobe.record.rows.gradient_checks import Cause, Verdict
from store import tables
from store.database.session import Transaction
from store.records.reader import at_key, row_of
from store.runs.model import RunRow


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOffRow:
    """A place where the dependence on a tensor leaves the graph.

    Attributes:
        function: What cut it. site: the statement; null: outside the user's files.
    """

    function: str
    site: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientCheckRow:
    """One leaf, or several that were moved together, at one step: the derivative of the loss and what the step used.

    Attributes:
        n: Its number, in order of time.
        tensor: The leaf, or the first of those that were moved together; null: it has no row.
        tensors: All that were moved together; empty: only tensor.
        name: The tensor's `state_dict` key, else the name it is best known by; null: it has neither.
        step: Optimizer steps finished before it.
        optimizer: Whose step; null: one that has no row.
        moment: The step's; null: not known.
        verdict: agrees, cut, factor, differs, rough or not-checked.
        numeric: The derivative along one direction; null: not checked.
        numeric_wide: The same from a change three times as large; null: not checked.
        frozen: With each explicit cut held at its value; null: as numeric.
        arrived: What the backward calls added along it; null: nothing. used: `.grad` along it; null: there was none.
        tolerance: Difference up to which two of these are equal; null: not checked.
        factor: Of verdict factor: used over numeric; null: another verdict.
        precision: In which the step was computed again: float64, float32; empty: not checked.
        explained_by: What makes a difference on purpose; null: nothing does.
        cause: The mistake that makes it; null: not known. site, line, function: where; null: not known.
        cuts: Where the dependence leaves the graph.
        why: Why it was not checked; null: it was.
    """

    n: int
    tensor: int | None
    tensors: list[int]
    name: str | None
    step: int
    optimizer: int | None
    moment: int | None
    verdict: Verdict
    numeric: float | None
    numeric_wide: float | None
    frozen: float | None
    arrived: float | None
    used: float | None
    tolerance: float | None
    factor: float | None
    precision: str
    explained_by: str | None
    cause: Cause | None
    site: int | None
    line: int | None
    function: str | None
    cuts: list[CutOffRow]
    why: str | None


def gradient_checks(
    transaction: Transaction, run: RunRow, *, after: int = 0, limit: int = 100, verdict: str | None = None
) -> list[GradientCheckRow]:
    """Rows of the run's record in order of their number; the first `after` of them are left out.

    Args:
        verdict: Only rows with this one.
    """
    if run.key is None:
        return []
    head = sa.select(tables.record.c.gradient_checks).where(at_key(tables.record, run.key))
    rows: list[GradientCheck] = [row_of(GradientCheck, value) for value in (transaction.execute(head).scalar() or ())]
    chosen = [row for row in rows if verdict is None or row.verdict == verdict][after : after + limit]
    tensor, site = tables.tensor, tables.site
    numbers = sorted({row.tensor for row in chosen if row.tensor is not None})
    sites = sorted({row.site for row in chosen if row.site is not None})
    known = sa.func.coalesce(tensor.c.fqn, tensor.c.name)
    named = sa.select(tensor.c.tensor, known).where(at_key(tensor, run.key), tensor.c.tensor.in_(numbers))
    placed = sa.select(site.c.site, site.c.line).where(at_key(site, run.key), site.c.site.in_(sites))
    names: dict[Any, str | None] = {row[0]: row[1] for row in transaction.execute(named)}
    lines: dict[Any, int] = {row[0]: row[1] for row in transaction.execute(placed)}
    return [_row(row, names.get(row.tensor), lines.get(row.site)) for row in chosen]


def _row(row: GradientCheck, name: str | None, line: int | None) -> GradientCheckRow:
    return GradientCheckRow(
        n=row.n, tensor=row.tensor, tensors=list(row.tensors), name=name, step=row.step, optimizer=row.optimizer,
        moment=row.moment, verdict=row.verdict, numeric=row.numeric, numeric_wide=row.numeric_wide, frozen=row.frozen,
        arrived=row.arrived, used=row.used, tolerance=row.tolerance, factor=row.factor, precision=row.precision,
        explained_by=row.explained_by, cause=row.cause, site=row.site, line=line, function=row.function,
        cuts=[CutOffRow(function=cut.function, site=cut.site) for cut in row.cuts], why=row.why,
    )  # fmt: skip
