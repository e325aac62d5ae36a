"""A record -> the rows of its tables, ready for the bulk writer. Pure: no database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
import sqlalchemy as sa

from backprobe.record import BadRecord, state_flags
from store import tables
from store.records import chunk_format
from store.records.bulk import Batch, fit_values, fitting
from store.records.chunk_encoding import chunk_rows, floats
from store.records.last_state import Lookup, lookup
from store.records.mapping import IN_HEAD, SPECS, Derived, RowSpec, plain
from store.tables import KEY

if TYPE_CHECKING:
    from backprobe.record import Record, Snapshot, Statistics
    from backprobe.rules import WhyNone

_SNAPSHOT: Final = attrgetter(
    "tensor", "moment", "version", "grad_id", "grad_version", "grad_fn", *state_flags.NAMES, "grad_fn_read", "grad",
    "value", "grad_stats",
)  # fmt: skip
_FLOATS: Final = ("norm", "sum", "min", "max")
_STATISTICS: Final = (*_FLOATS, "nan", "inf", "zeros", "counted")
_MEASURED: Final = attrgetter(*_STATISTICS)
_UNMEASURED: Final = (None, None, None, None, 0, 0, 0, 0)


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
    columns = [fit_values(spec.table, name, _column(spec, name)(known, record.tensors)) for name in names]
    return dict(zip((row.tensor for row in record.tensors), zip(*columns, strict=True), strict=True))


def batch_of(spec: RowSpec, known: Lookup, rows: Sequence[Any]) -> Batch:
    """Rows of one table of a record.

    Raises:
        BadRecord: a number does not fit its column.
    """
    if not rows:
        return Batch(table=spec.table, rows=())
    columns = [fit(column(known, rows)) for column, fit in _columns(spec.of)]
    return Batch(table=spec.table, rows=list(zip(*columns, strict=True)))


@cache
def _columns(of: str) -> list[tuple[Derived, Callable[[Sequence[Any]], Sequence[Any]]]]:
    """Of each column of a table: its values, and how they are made to fit."""
    (spec,) = (spec for spec in SPECS if spec.of == of)
    return [(_column(spec, name), fitting(spec.table, name)) for name in spec.columns]


def _column(spec: RowSpec, name: str) -> Derived:
    if name in spec.derived:
        return spec.derived[name]
    field = attrgetter(spec.renamed.get(name, name))
    if isinstance(spec.table.c[name].type, sa.JSON):
        return lambda _, rows: [plain(field(row)) for row in rows]
    return lambda _, rows: list(map(field, rows))


def head_of(record: Record | None, grad_fns: list[str], head: Mapping[str, Any] | None = None) -> Batch:
    """Build the row of a record's head. No record: no header came; `head`: as in `record_batches`."""
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
    row = tuple(fit_values(tables.record, name, [values.get(name)])[0] for name in names)
    return Batch(table=tables.record, rows=[row])


def _grad_fns(snapshots: Sequence[Snapshot]) -> dict[str, int]:
    """Names of nodes in the snapshots, counted from 1 in order of first sight."""
    names: dict[str, int] = {}
    for snapshot in snapshots:
        if snapshot.grad_fn is not None:
            names.setdefault(snapshot.grad_fn, len(names) + 1)
    return names


def snapshot_columns(snapshots: Sequence[Snapshot], grad_fns: Mapping[str, int]) -> dict[str, Any]:
    """Snapshots in order of (tensor, moment) as columns for `store.records.chunk_encoding`.

    Raises:
        BadRecord: a number does not fit its column.
    """
    if not snapshots:
        return {name: np.zeros(0, "<i4") for name in ("tensor", "moment")}
    tensor, moment, version, grad_id, grad_version, grad_fn, *state, value, gradient = zip(
        *map(_SNAPSHOT, snapshots), strict=True
    )
    columns: dict[str, Any] = {
        "tensor": tensor,
        "moment": moment,
        "flags": _flags(snapshots, [grad_fn, *state], value, gradient),
        "version": [-1 if number is None else number for number in version],
    }
    if grad_fn.count(None) < len(grad_fn):
        columns["grad_fn"] = [0 if node_id is None else grad_fns[node_id] for node_id in grad_fn]
    for name, numbers in (("grad_id", grad_id), ("grad_version", grad_version)):
        if numbers.count(None) < len(numbers):
            columns[name] = [-1 if number is None else number for number in numbers]
    return {name: _array(name, values) for name, values in columns.items()} | {
        name: _array(name, values)
        for of, statistics in (("value", value), ("grad", gradient))
        for name, values in _statistics(of, statistics)
    }


def _statistics(of: str, statistics: Sequence[Statistics | None]) -> Iterator[tuple[str, Any]]:
    """Build the columns of statistics. A column that has nothing but zeros is left out."""
    if statistics.count(None) == len(statistics):
        return
    of_each = zip(
        *(_UNMEASURED if statistic is None else _MEASURED(statistic) for statistic in statistics), strict=True
    )
    for field, values in zip(_STATISTICS, of_each, strict=True):
        if field in _FLOATS:
            yield f"{of}_{field}", floats(values)
        elif any(values):
            yield f"{of}_{field}", values


def _array(name: str, values: Any) -> Any:
    if isinstance(values, np.ndarray):
        return values  # pyright: ignore[reportUnknownVariableType]
    dtype = chunk_format.COLUMNS[name].dtype if name in chunk_format.COLUMNS else "<i4"
    try:
        return np.array(values, dtype)
    except OverflowError as error:
        raise BadRecord("out-of-range", f"snapshot.{name} = {max(values)}: too large to be kept") from error


def _flags(
    snapshots: Sequence[Snapshot],
    state: Sequence[Sequence[Any]],
    value: Sequence[Statistics | None],
    gradient: Sequence[Statistics | None],
) -> list[int]:
    """`layout`'s bits; snapshots of a record are alike, so that few of them are worked out."""
    kinds = [
        [None if statistic is None else statistic.kind for statistic in statistics] for statistics in (value, gradient)
    ]
    known: dict[tuple[Any, ...], int] = {}
    flags: list[int] = []
    for row, looks in zip(snapshots, zip(*state, *kinds, strict=True), strict=True):
        bits = known.get(looks)
        if bits is None:
            bits = known[looks] = _bits(row)
        flags.append(bits)
    return flags


def _bits(row: Snapshot) -> int:
    return (
        state_flags.bits_of(row)
        | (chunk_format.HAS_GRAD_FN if row.grad_fn is not None else 0)
        | (0 if row.grad_fn_read else chunk_format.GRAD_FN_NOT_READ)
        | (
            chunk_format.GRAD_NONE
            if row.grad == "none"
            else chunk_format.GRAD_NOT_READ
            if row.grad == "not-read"
            else 0
        )
        | _encode_measured_flags(row.value, chunk_format.VALUE_MEASURED, chunk_format.VALUE_SAMPLED)
        | _encode_measured_flags(row.grad_stats, chunk_format.GRAD_MEASURED, chunk_format.GRAD_SAMPLED)
    )


def _encode_measured_flags(statistics: Statistics | None, measured: int, sampled: int) -> int:
    if statistics is None:
        return 0
    return measured | sampled if statistics.kind == "sampled" else measured
