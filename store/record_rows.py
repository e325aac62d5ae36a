"""A record -> the rows of its tables, ready for the bulk writer. Pure: no database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import sqlalchemy as sa

from backprobe.record import BadRecord
from store import layout, tables
from store.bulk import Batch, fitted
from store.chunks import chunk_rows, floats
from store.last_state import Lookup, lookup
from store.row_spec import IN_HEAD, SPECS, RowSpec, plain
from store.tables import KEY

if TYPE_CHECKING:
    from backprobe.record import Record, Snapshot, Statistics
    from backprobe.rules import WhyNone


def record_batches(
    record: Record | None, whys: Mapping[int, WhyNone] | None = None, head: Mapping[str, Any] | None = None
) -> list[Batch]:
    """Every row of a record, table by table; at least its head's.

    Args:
        record: None: only the head is written, and says that no header came.
        whys: Why tensors have no gradient.
        head: Columns of the head that the record does not know: `streams`, `rules_not_run`.

    Raises:
        BadRecord: a number does not fit its column.
    """
    names = _grad_fns(record.snapshots) if record is not None else {}
    batches = [head_of(record, list(names), head)]
    if record is None:
        return batches
    known = lookup(record, whys or {})
    batches += [batch_of(spec, known, getattr(record, spec.of)) for spec in SPECS]
    batches.append(Batch(table=tables.snapshot_chunk, rows=chunk_rows(snapshot_columns(record.snapshots, names))))
    return batches


def whys_by_tensor(record: Record, whys: Mapping[int, WhyNone], names: Sequence[str]) -> dict[int, tuple[Any, ...]]:
    """By tensor the columns of these names that tell why it has no gradient."""
    (spec,) = (spec for spec in SPECS if spec.of == "tensors")
    known = lookup(record, whys)
    columns = [fitted(spec.table, name, _column(spec, name, known, record.tensors)) for name in names]
    return dict(zip((row.tensor for row in record.tensors), zip(*columns, strict=True), strict=True))


def batch_of(spec: RowSpec, known: Lookup, rows: Sequence[Any]) -> Batch:
    """Rows of one table of a record.

    Raises:
        BadRecord: a number does not fit its column.
    """
    if not rows:
        return Batch(table=spec.table, rows=())
    columns = [fitted(spec.table, name, _column(spec, name, known, rows)) for name in spec.columns]
    return Batch(table=spec.table, rows=list(zip(*columns, strict=True)))


def _column(spec: RowSpec, name: str, known: Lookup, rows: Sequence[Any]) -> list[Any]:
    derived = spec.derived.get(name)
    if derived is not None:
        return derived(known, rows)
    values = list(map(attrgetter(spec.renamed.get(name, name)), rows))
    return [plain(value) for value in values] if isinstance(spec.table.c[name].type, sa.JSON) else values


def head_of(record: Record | None, grad_fns: list[str], head: Mapping[str, Any] | None = None) -> Batch:
    """The one row of a record's head. None: it says that no header came; `head`: as in `record_batches`."""
    values: dict[str, Any] = {name: [] for name in (*IN_HEAD, "fallbacks", "deviations")}
    values |= {"reached_end": False, "grad_fns": grad_fns, "streams": {}, "rules_not_run": []}
    if record is not None:
        header, end = record.header, record.end
        values |= {name: [plain(row) for row in getattr(record, of)] for name, (of, _) in IN_HEAD.items()}
        values |= {name: getattr(header, name) for name in ("backprobe_version", "tier", "entry")}
        values["schema_version"] = header.schema_version if header.first_version is None else header.first_version
        values |= {"started_at": header.started_at, "tap": header.environment.tap}
        values |= {"environment": msgspec.to_builtins(header.environment)}
        values |= {"fallbacks": header.fallbacks, "deviations": header.deviations}
        if end is not None:
            values |= {name: getattr(end, name) for name in end.__struct_fields__} | {"reached_end": True}
    values |= dict(head or {})
    if record is not None and record.streams:
        recorded = {row.name: {"tail": row.tail, "total_bytes": row.total_bytes} for row in record.streams}
        values["streams"] = recorded | values["streams"] | {"recorded": recorded}
    names = [column.name for column in tables.record.columns][len(KEY) :]
    row = tuple(fitted(tables.record, name, [values.get(name)])[0] for name in names)
    return Batch(table=tables.record, rows=[row])


def _grad_fns(snapshots: Sequence[Snapshot]) -> dict[str, int]:
    """Names of nodes in the snapshots, counted from 1 in order of first sight."""
    names: dict[str, int] = {}
    for snapshot in snapshots:
        if snapshot.grad_fn is not None:
            names.setdefault(snapshot.grad_fn, len(names) + 1)
    return names


def snapshot_columns(snapshots: Sequence[Snapshot], grad_fns: Mapping[str, int]) -> dict[str, Any]:
    """Snapshots in order of (tensor, moment) as columns for `store.chunks`.

    Raises:
        BadRecord: a number does not fit its column.
    """
    columns: dict[str, Any] = {
        "tensor": [row.tensor for row in snapshots],
        "moment": [row.moment for row in snapshots],
        "flags": [_flags(row) for row in snapshots],
        "grad_fn": [0 if row.grad_fn is None else grad_fns[row.grad_fn] for row in snapshots],
        "version": [-1 if row.version is None else row.version for row in snapshots],
        "grad_id": [-1 if row.grad_id is None else row.grad_id for row in snapshots],
        "grad_version": [-1 if row.grad_version is None else row.grad_version for row in snapshots],
    }
    for of, name in (("value", "value"), ("grad", "grad_stats")):
        statistics: list[Statistics | None] = [getattr(row, name) for row in snapshots]
        if all(one is None for one in statistics):
            continue
        for field in ("norm", "sum", "min", "max"):
            columns[f"{of}_{field}"] = floats(None if one is None else getattr(one, field) for one in statistics)
        for field in ("nan", "inf", "zeros", "counted"):
            columns[f"{of}_{field}"] = [0 if one is None else getattr(one, field) for one in statistics]
    return {name: _array(name, values) for name, values in columns.items()}


def _array(name: str, values: Any) -> Any:
    if isinstance(values, np.ndarray):
        return values  # pyright: ignore[reportUnknownVariableType]
    dtype = layout.COLUMNS[name].dtype if name in layout.COLUMNS else "<i4"
    try:
        return np.array(values, dtype)
    except OverflowError as error:
        raise BadRecord("out-of-range", f"snapshot.{name} = {max(values)}: too large to be kept") from error


def _flags(row: Snapshot) -> int:
    return (
        (layout.IS_LEAF if row.is_leaf else 0)
        | (layout.REQUIRES_GRAD if row.requires_grad else 0)
        | (layout.RETAINS_GRAD if row.retains_grad else 0)
        | (layout.HAS_GRAD_FN if row.grad_fn is not None else 0)
        | (0 if row.grad_fn_read else layout.GRAD_FN_NOT_READ)
        | (layout.GRAD_NONE if row.grad == "none" else layout.GRAD_NOT_READ if row.grad == "not-read" else 0)
        | _measured(row.value, layout.VALUE_MEASURED, layout.VALUE_SAMPLED)
        | _measured(row.grad_stats, layout.GRAD_MEASURED, layout.GRAD_SAMPLED)
    )


def _measured(statistics: Statistics | None, measured: int, sampled: int) -> int:
    if statistics is None:
        return 0
    return measured | sampled if statistics.kind == "sampled" else measured
