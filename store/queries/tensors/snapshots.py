"""Snapshots, out of their chunks: of one tensor, or of a whole run by page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

import sqlalchemy as sa

from backprobe.record import Snapshot, Statistics
from backprobe.record.state_flags import by_name, flags_of
from store import tables
from store.database.in_clause import in_numbers
from store.database.session import Transaction
from store.queries.tensors.tensor_answers import SnapshotPage, SnapshotRow, StatisticsRow
from store.queries.tensors.tensor_filter import TensorFilter
from store.records.chunk_encoding import NAMES
from store.records.reader import at_key, mappings, snapshots_of
from store.runs.model import RunKey, RunRow

_CHUNKS_AT_ONCE: Final = 16
_c: Final = tables.snapshot_chunk
_m: Final = tables.moment
_s: Final = tables.site
_t: Final = tables.tensor


def tensor_snapshots(
    transaction: Transaction,
    run: RunRow,
    tensor: int,
    *,
    kind: Sequence[str] = (),
    from_moment: int = 0,
    to_moment: int | None = None,
    after: int | None = None,
    limit: int = 1000,
) -> tuple[SnapshotRow, ...]:
    """Snapshots of one tensor by moment.

    Args:
        transaction: To read by.
        run: Whose record.
        tensor: Its number.
        kind: Kinds of moments, any of these; empty: all.
        from_moment: First moment, included. to_moment: last, included; None: to the end.
        to_moment: See from_moment.
        after: Only later moments than this: the last one of the page before.
        limit: Snapshots at most.
    """
    if run.key is None:
        return ()
    first = from_moment if after is None else max(from_moment, after + 1)
    wanted = sa.and_(_c.c.tensor == tensor, _c.c.last_moment >= first)
    if to_moment is not None:
        wanted = sa.and_(wanted, _c.c.first_moment <= to_moment)
    rows = (
        row
        for row in _rows(transaction, run.key, wanted, kind)
        if first <= row.moment and (to_moment is None or row.moment <= to_moment)
    )
    return tuple(islice(rows, limit))


def snapshots(
    transaction: Transaction,
    run: RunRow,
    *,
    kind: Sequence[str] = (),
    nan: bool = False,
    after: tuple[int, int] | None = None,
    limit: int = 100,
    **filters: Any,
) -> SnapshotPage:
    """Snapshots of all tensors, by (tensor, moment).

    Args:
        transaction: To read by.
        run: Whose record.
        kind: Kinds of moments, any of these; empty: all.
        nan: Only those with a NaN in the value or the gradient.
        after: `SnapshotPage.next` of the page before; None: the first page.
        limit: Snapshots at most.
        filters: The fields of `TensorFilter`: only of these tensors.
    """
    if run.key is None:
        return SnapshotPage(items=(), next=None)
    tensor, moment = after or (-1, -1)
    wanted = sa.or_(_c.c.tensor > tensor, sa.and_(_c.c.tensor == tensor, _c.c.last_moment > moment))
    if conditions := TensorFilter(**filters).conditions(transaction):
        wanted = sa.and_(wanted, _c.c.tensor.in_(sa.select(_t.c.tensor).where(at_key(_t, run.key), *conditions)))
    if nan:
        wanted = sa.and_(wanted, _c.c.nan_total > 0)
    rows = (
        row
        for row in _rows(transaction, run.key, wanted, kind)
        if (row.tensor, row.moment) > (tensor, moment) and (not nan or _has_nan(row))
    )
    items = tuple(islice(rows, limit + 1))
    shown = items[:limit]
    return SnapshotPage(items=shown, next=(shown[-1].tensor, shown[-1].moment) if len(items) > limit else None)


def _has_nan(row: SnapshotRow) -> bool:
    return any(found is not None and found.nan for found in (row.value, row.grad_stats))


def _rows(
    transaction: Transaction, key: RunKey, wanted: sa.ColumnElement[bool], kind: Sequence[str]
) -> Iterator[SnapshotRow]:
    """Snapshots in the wanted chunks, in order, a few chunks decoded at a time."""
    head = sa.select(tables.record.c.grad_fns).where(at_key(tables.record, key))
    grad_fns: list[str] = transaction.execute(head).scalar() or []
    query = sa.select(*[_c.c[name] for name in NAMES]).where(at_key(_c, key), wanted)
    place: tuple[int, int] | None = None
    while True:
        page = query if place is None else query.where(sa.tuple_(_c.c.tensor, _c.c.first_moment) > place)
        chunks = mappings(transaction.execute(page.order_by(_c.c.tensor, _c.c.first_moment).limit(_CHUNKS_AT_ONCE)))
        if not chunks:
            return
        place = (chunks[-1]["tensor"], chunks[-1]["first_moment"])
        found = list(snapshots_of(chunks, grad_fns))
        yield from _build_snapshot_rows(transaction, key, found, kind)
        if len(chunks) < _CHUNKS_AT_ONCE:
            return


def _build_snapshot_rows(
    transaction: Transaction, key: RunKey, found: Sequence[Snapshot], kind: Sequence[str]
) -> Iterator[SnapshotRow]:
    """Join snapshots with what is known of their moments; leave out moments of other kinds."""
    numbers = sorted({row.moment for row in found})
    moments: dict[int, Any] = {}
    for start in range(0, len(numbers), 1000):
        query = (
            sa.select(_m.c.moment, _m.c.kind, _m.c.k, _m.c.step, _s.c.line)
            .select_from(_m)
            .outerjoin(_s, sa.and_(*[_s.c[name] == _m.c[name] for name in tables.KEY], _s.c.site == _m.c.site))
            .where(at_key(_m, key), in_numbers(_m.c.moment, numbers[start : start + 1000]))
        )
        moments |= {row.moment: row for row in transaction.execute(query)}
    verdicts = sa.select(_t.c.tensor, _t.c.last_moment, _t.c.why_none).where(
        at_key(_t, key), in_numbers(_t.c.tensor, sorted({row.tensor for row in found}))
    )
    last = {(row.tensor, row.last_moment): row.why_none for row in transaction.execute(verdicts)}
    for row in found:
        moment = moments[row.moment]
        if not kind or moment.kind in kind:
            yield _snapshot_row(row, moment, last.get((row.tensor, row.moment)))


def _snapshot_row(row: Snapshot, moment: Any, why: str | None) -> SnapshotRow:
    return SnapshotRow(
        tensor=row.tensor,
        moment=row.moment,
        kind=moment.kind,
        k=moment.k,
        step=moment.step,
        line=moment.line,
        **by_name(flags_of(row)),
        grad_fn=row.grad_fn,
        version=row.version,
        grad=row.grad,
        grad_id=row.grad_id,
        grad_version=row.grad_version,
        why_none=why,
        value=statistics_row(row.value),
        grad_stats=statistics_row(row.grad_stats),
    )


def statistics_row(found: Statistics | None) -> StatisticsRow | None:
    """Convert stored statistics to the values that are returned; None: not measured."""
    if found is None:
        return None
    mean = None if found.sum is None or not found.counted else found.sum / found.counted
    std = None
    if mean is not None and found.norm is not None:
        variance = found.norm**2 / found.counted - mean**2
        std = math.nan if math.isnan(variance) else math.sqrt(max(0.0, variance))
    return StatisticsRow(
        norm=found.norm,
        sum=found.sum,
        min=found.min,
        max=found.max,
        mean=mean,
        std=std,
        nan=found.nan,
        inf=found.inf,
        zeros=found.zeros,
        counted=found.counted,
        kind=found.kind,
    )
