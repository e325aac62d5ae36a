"""The ranks of a distributed job beside each other: one run each, tied together by what their recorders say of them.

    rank  run       steps  gradient norm of step 40
    0     run_...A  400    0.531
    1     run_...B  400    0.531
    2     run_...C   41    0.874    -> the first step at which the norms differ is 40

Ranks of one job have the labels `group`, `rank`, `world_size` and, of a job that was begun again, `restart`. The name
of a group may come again: of the runs with equal labels those are one job whose ids were made within `TOGETHER_SECONDS`
of the run that is asked for, and of several runs of a rank the one whose id is nearest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import sqlalchemy as sa

from backprobe.record.rows.series import Anomaly
from backprobe.severity import LEVELS, Level
from store.database.ids import id_range, milliseconds
from store.database.session import Transaction
from store.runs.model import FindingCounts, RunKey, RunRow, Status
from store.runs.rank_labels import TOGETHER_SECONDS, place_of
from store.runs.reading.run_filter import build_label_conditions
from store.runs.reading.run_rows import SELECT_RUN, run_row
from store.tables import finding, moment, optimizer_event, run, step

MOST_RANKS: Final = 1024
"""Told of one job."""

TOLERANCE: Final = 1e-3
"""By this part gradient norms of two ranks may differ: DDP makes the gradients equal on all ranks, so beyond it they
are not those of one model. float16 has 11 bits (IEEE 754-2019, binary16), a unit of which is 0.05 %."""

MOST_FINDINGS: Final = 100
_AT: Final = ("loss", "grad_norm", "anomaly")


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRow:
    """One rank.

    Attributes:
        steps: Training steps that have come; null: no record has.
        step_seconds: How long a step took, on average; null: no step was told.
        loss, grad_norm: Of the last step that has them, on this rank; null: none has.
        anomaly: What was odd first, at anomaly_step; null: nothing was.
    """

    rank: int
    run: str
    status: Status
    heard_at: str | None
    findings: FindingCounts
    steps: int | None
    step_seconds: float | None
    loss: float | None
    grad_norm: float | None
    anomaly: Anomaly | None
    anomaly_step: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankNorm:
    """The norm of all gradients of a rank at one step, before clipping where that differs; null: not measured."""

    rank: int
    grad_norm: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NormDifference:
    """The first step at which gradient norms of two ranks differ by more than one part in a thousand.

    Where gradients are clipped, the norms before that are compared too. A norm that is not finite differs from one that
    is, and from no other that is not. Under DDP they are equal. Ranks of FSDP hold parts of the gradients, so that
    theirs differ rightly.
    """

    step: int
    norms: list[RankNorm]


@dataclass(frozen=True, slots=True, kw_only=True)
class NonFiniteStart:
    """Where NaN or an infinity began: the first step that has one, and the ranks that had it in that step.

    A loss is each rank's own; a gradient that is not finite is so on all ranks as soon as DDP has added it up.

    Attributes:
        of: What was not finite first: the loss, or the gradients' norm.
    """

    step: int
    of: Literal["loss", "grad_norm"]
    ranks: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialFinding:
    """A finding that some ranks have, and others that were judged do not.

    Attributes:
        fingerprint: What makes it the same finding on each.
        ranks: That have it.
    """

    fingerprint: str
    code: str
    rule: str
    level: Level
    message: str
    ranks: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankComparison:
    """The ranks of one job beside each other.

    Attributes:
        group: What they have in common. restart: how often the job was begun again; null: not told.
        world_size: Processes of the job.
        missing: Ranks of which there is no run: they were not recorded, or have not reported. The first 1,024.
        first_difference: null: no step's norms differ.
        first_nonfinite: Where NaN or an infinity began; null: all losses and norms are finite.
        findings: That some ranks have and others do not, worst first, the first 100.
    """

    group: str
    restart: int | None
    world_size: int
    missing: list[int]
    items: list[RankRow]
    first_difference: NormDifference | None
    first_nonfinite: NonFiniteStart | None
    findings: list[PartialFinding]


def ranks(transaction: Transaction, this_run: RunRow) -> RankComparison | None:
    """All ranks of the job that a run is a rank of; None: its labels name no job of several ranks."""
    place = place_of(this_run.labels)
    if place is None:
        return None
    group, _, world_size = place
    found = _of_job(transaction, this_run)
    restart = this_run.labels.get("restart", "")
    keys = {rank: row.key for rank, row in found.items() if row.key is not None and row.record.state != "expired"}
    return RankComparison(
        group=group,
        restart=int(restart) if restart.isascii() and restart.isdigit() else None,
        world_size=world_size,
        missing=[rank for rank in range(min(world_size, MOST_RANKS)) if rank not in found],
        items=_rows(transaction, found, keys),
        first_difference=_first_difference(transaction, keys),
        first_nonfinite=_first_nonfinite(transaction, keys),
        findings=_partial_findings(transaction, {rank: keys[rank] for rank in keys if _is_judged(found[rank])}),
    )


def _is_judged(row: RunRow) -> bool:
    return row.findings.ruleset is not None


def _of_job(transaction: Transaction, this_run: RunRow) -> dict[int, RunRow]:
    """Find the run of each rank of this job, in order of the ranks."""
    same = {name: this_run.labels[name] for name in ("group", "world_size")}
    restart = this_run.labels.get("restart")
    again = run.c.labels["restart"].as_string()
    at = milliseconds(this_run.id)
    around = int(1000 * TOGETHER_SECONDS)
    query = (
        SELECT_RUN.where(run.c.public_id.between(*id_range("run", at - around, at + around)))
        .where(run.c.tenant_id == this_run.tenant_id, run.c.project_id == this_run.project_id)
        .where(run.c.origin != sa.literal_column("'trial'"))
        .where(*build_label_conditions(run.c.labels, same), again.is_(None) if restart is None else again == restart)
    )
    nearest: list[RunRow] = []
    for later in (False, True):
        side = run.c.public_id > this_run.id if later else run.c.public_id <= this_run.id
        order = run.c.public_id.asc() if later else run.c.public_id.desc()
        nearest += map(run_row, transaction.execute(query.where(side).order_by(order).limit(2 * MOST_RANKS)))
    found: dict[int, RunRow] = {}
    for row in sorted(nearest, key=lambda row: abs(milliseconds(row.id) - at)):
        place = place_of(row.labels)
        if place is not None:
            found.setdefault(place[1], row)
    return {rank: found[rank] for rank in sorted(found)[:MOST_RANKS]}


def _its(table: sa.Table, keys: Mapping[int, RunKey]) -> sa.ColumnElement[bool]:
    """Select the rows of these records. Their months are in the condition too, so that no other month is read."""
    months = sorted({key.part for key in keys.values()})
    pairs = [(key.run_id, key.attempt) for key in keys.values()]
    return sa.and_(table.c.part.in_(months), sa.tuple_(table.c.run_id, table.c.attempt).in_(pairs))


def _rows(transaction: Transaction, found: Mapping[int, RunRow], keys: Mapping[int, RunKey]) -> list[RankRow]:
    counted = sa.select(
        step.c.run_id,
        (sa.func.max(step.c.step) + 1).label("steps"),
        sa.func.avg(step.c.duration_ns).label("duration_ns"),
        sa.func.max(step.c.step).filter(step.c.loss.is_not(None)).label("loss"),
        sa.func.max(step.c.step).filter(step.c.grad_norm.is_not(None)).label("grad_norm"),
        sa.func.min(step.c.step).filter(step.c.anomaly.is_not(None)).label("anomaly"),
    )
    counts = {row.run_id: row for row in transaction.execute(counted.where(_its(step, keys)).group_by(step.c.run_id))}
    wanted = {(row.run_id, at) for row in counts.values() for at in (row.loss, row.grad_norm, row.anomaly)}
    chosen = sa.select(step.c.run_id, step.c.step, step.c.loss, step.c.grad_norm, step.c.anomaly).where(
        _its(step, keys), sa.tuple_(step.c.run_id, step.c.step).in_([place for place in wanted if place[1] is not None])
    )
    steps = {(row.run_id, row.step): row for row in transaction.execute(chosen)}
    rows: list[RankRow] = []
    for rank, row in found.items():
        count = counts.get(row.run_id)
        seconds = None if count is None else float(count.duration_ns) / 1e9
        at = {} if count is None else {name: steps.get((row.run_id, getattr(count, name))) for name in _AT}
        told: dict[str, Any] = {name: None if (its := at.get(name)) is None else getattr(its, name) for name in _AT}
        rows.append(
            RankRow(
                rank=rank, run=row.id, status=row.status, findings=row.findings, step_seconds=seconds,
                heard_at=None if row.recorder is None else row.recorder.heard_at,
                steps=None if count is None else count.steps,
                anomaly_step=None if count is None else count.anomaly, **told,
            )
        )  # fmt: skip
    return rows


def _is_finite(value: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    """Match a finite measured value. SQLite stores NaN as text, and each database spells infinity in its way."""
    return sa.cast(value, sa.Text).not_in(("NaN", "Infinity", "-Infinity", "Inf", "-Inf"))


def _first_difference(transaction: Transaction, keys: Mapping[int, RunKey]) -> NormDifference | None:
    """Find the first difference of the norms before clipping or of the steps' norms; of equal ones the former."""
    found = [_first_of(transaction, keys, of) for of in (_norms_before_clipping(keys), _norms_of_steps(keys))]
    return min((start for start in found if start is not None), key=lambda start: start.step, default=None)


def _norms_of_steps(keys: Mapping[int, RunKey]) -> sa.Subquery:
    """Select the norm of each step that has one. A step that was captured in full has the norm after clipping."""
    query = sa.select(step.c.run_id, step.c.step, step.c.grad_norm.label("norm"))
    return query.where(_its(step, keys), step.c.grad_norm.is_not(None)).subquery()


def _norms_before_clipping(keys: Mapping[int, RunKey]) -> sa.Subquery:
    """Select the norms before clipping: gradients clipped to one norm are equal in it, whatever they were."""
    event, at = optimizer_event.c, moment.c
    same = sa.and_(event.part == at.part, event.run_id == at.run_id, event.attempt == at.attempt)
    query = sa.select(event.run_id, at.step, sa.func.max(event.total_norm).label("norm"))
    query = query.join_from(optimizer_event, moment, sa.and_(same, event.moment == at.moment))
    query = query.where(_its(optimizer_event, keys), event.kind == "clip_grad_norm", event.total_norm.is_not(None))
    return query.group_by(event.run_id, at.step).subquery()


def _first_of(transaction: Transaction, keys: Mapping[int, RunKey], norms: sa.Subquery) -> NormDifference | None:
    """Find the first step at which finite norms differ, or only some ranks have a finite one."""
    norm, finite = norms.c.norm, _is_finite(norms.c.norm)
    least, most = sa.func.min(norm).filter(finite), sa.func.max(norm).filter(finite)
    numbers = sa.func.count().filter(finite)
    query = (
        sa.select(norms.c.step)
        .group_by(norms.c.step)
        .having(sa.or_(most > least * (1.0 + TOLERANCE), sa.and_(numbers > 0, numbers < sa.func.count())))
        .order_by(norms.c.step)
        .limit(1)
    )
    first = transaction.execute(query).scalar()
    if first is None:
        return None
    rows = transaction.execute(sa.select(norms.c.run_id, norm).where(norms.c.step == first))
    by_run: dict[int, float | None] = {row.run_id: row.norm for row in rows}
    return NormDifference(
        step=first, norms=[RankNorm(rank=rank, grad_norm=by_run.get(key.run_id)) for rank, key in keys.items()]
    )


def _first_nonfinite(transaction: Transaction, keys: Mapping[int, RunKey]) -> NonFiniteStart | None:
    """Find the first step with a loss or a norm that is not finite, and its ranks; of both, return the loss."""
    rank_of = {key.run_id: rank for rank, key in keys.items()}
    found: list[NonFiniteStart] = []
    columns: tuple[tuple[Literal["loss", "grad_norm"], sa.Column[Any]], ...]
    columns = ("loss", step.c.loss), ("grad_norm", step.c.grad_norm)
    for of, value in columns:
        is_odd = sa.and_(_its(step, keys), value.is_not(None), sa.not_(_is_finite(value)))
        first = transaction.execute(sa.select(sa.func.min(step.c.step)).where(is_odd)).scalar()
        if first is not None:
            runs = transaction.execute(sa.select(step.c.run_id).where(is_odd, step.c.step == first)).scalars()
            found.append(NonFiniteStart(step=first, of=of, ranks=sorted(rank_of[run_id] for run_id in runs)))
    return min(found, key=lambda start: start.step, default=None)


def _partial_findings(transaction: Transaction, keys: Mapping[int, RunKey]) -> list[PartialFinding]:
    f = finding.c
    pairs = [(key.run_id, key.attempt) for key in keys.values()]
    theirs = (sa.tuple_(f.run_id, f.attempt).in_(pairs), f.gone_at.is_(None), f.suppressed.is_(None))
    worst = sa.func.min(sa.case({level: at for at, level in enumerate(LEVELS)}, value=f.level, else_=len(LEVELS)))
    some = sa.select(f.fingerprint, sa.func.min(f.id).label("first")).where(*theirs).group_by(f.fingerprint)
    some = some.having(sa.func.count(f.run_id.distinct()) < len(keys))
    some = some.order_by(worst, sa.func.min(f.code), f.fingerprint).limit(MOST_FINDINGS)
    first: dict[str, int] = {row.fingerprint: row.first for row in transaction.execute(some)}
    if not first:
        return []
    rank_of = {key.run_id: rank for rank, key in keys.items()}
    having: dict[str, set[int]] = {}
    for row in transaction.execute(sa.select(f.run_id, f.fingerprint).where(*theirs, f.fingerprint.in_(first))):
        having.setdefault(row.fingerprint, set()).add(rank_of[row.run_id])
    told = sa.select(f.fingerprint, f.code, f.rule, f.level, f.message).where(f.id.in_(first.values()))
    return _worst_first(
        [
            PartialFinding(
                fingerprint=row.fingerprint, code=row.code, rule=row.rule, level=row.level, message=row.message,
                ranks=sorted(having[row.fingerprint]),
            )
            for row in transaction.execute(told) if row.fingerprint in having
        ]
    )  # fmt: skip


def _worst_first(found: Sequence[PartialFinding]) -> list[PartialFinding]:
    return sorted(
        found, key=lambda finding_row: (LEVELS.index(finding_row.level), finding_row.code, finding_row.fingerprint)
    )
