"""The rows of a record's tables -> the record again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
import sqlalchemy as sa

from backprobe import record as r
from backprobe.record.record import without_missing_parameters
from backprobe.record.state_flags import flags_in
from store import tables
from store.database.session import Transaction
from store.records import chunk_format
from store.records.chunk_encoding import NAMES, columns_of, numbers
from store.records.mapping import IN_HEAD, SPECS, STATISTICS, STATISTICS_OF, RowSpec, as_array
from store.runs.model import RunKey

Decoded = tuple[r.Snapshot, int]
_FIELDS: Final = {spec.of: spec.fields() for spec in SPECS}


def at_key(table: sa.Table, key: RunKey) -> sa.ColumnElement[bool]:
    """Select the rows of one attempt's record.

    The month is written in the SQL itself: PostgreSQL then plans for its partition alone, once, and locks no other.
    """
    month = sa.bindparam(None, key.part, type_=table.c.part.type, literal_execute=True)
    return sa.and_(table.c.part == month, table.c.run_id == key.run_id, table.c.attempt == key.attempt)


def in_month(table: sa.Table, part: int) -> sa.ColumnElement[bool]:
    """Select as `at_key`, but with the parameters `run_id` and `attempt`, for a statement that is built once."""
    month = sa.literal_column(str(int(part)), table.c.part.type)
    run, attempt = sa.bindparam("run_id", type_=table.c.run_id.type), sa.bindparam("attempt", type_=sa.SmallInteger())
    return sa.and_(table.c.part == month, table.c.run_id == run, table.c.attempt == attempt)


def load_record(transaction: Transaction, key: RunKey) -> r.Record | None:
    """Load the record under a key; None if its header never came."""
    heads = mappings(transaction.execute(sa.select(tables.record).where(at_key(tables.record, key))))
    if not heads or heads[0]["schema_version"] is None:
        return None
    head = heads[0]
    parts: dict[str, Any] = {spec.of: tuple(_rows(transaction, spec, key)) for spec in SPECS}
    parts |= {of: tuple(row_of(row, stored) for stored in head[name] or ()) for name, (of, row) in IN_HEAD.items()}
    parts["streams"] = tuple(_streams(head["streams"].get("recorded", {})))
    parts["tensor_nodes"] = tuple(_tensor_nodes(transaction, key))
    chunk = tables.snapshot_chunk
    stored = transaction.execute(
        sa.select(*[chunk.c[name] for name in NAMES])
        .where(at_key(chunk, key))
        .order_by(chunk.c.tensor, chunk.c.first_moment)
    )
    parts["snapshots"] = tuple(snapshots_of(mappings(stored), head["grad_fns"]))
    record = r.Record(header=_header(head), end=_end(head), **parts)
    return record if record.end is not None else without_missing_parameters(record)


def mappings(result: Any) -> list[Mapping[str, Any]]:
    """Return the rows of a result by column name: columns named `class` and `count` are no attributes of a row."""
    return list(result.mappings())


def row_of(row: type[Any], stored: Mapping[str, Any]) -> Any:
    """Make a row of the record from its JSON object."""
    return msgspec.convert(as_array(row, stored), row)


def _rows(transaction: Transaction, spec: RowSpec, key: RunKey) -> Iterator[Any]:
    order = list(spec.table.primary_key.columns)
    query = sa.select(spec.table).where(at_key(spec.table, key)).order_by(*order)
    for stored in mappings(transaction.execute(query)):
        yield decode_row(spec, stored)


def decode_row(spec: RowSpec, stored: Mapping[str, Any]) -> Any:
    """Make a row of the record from the columns of its table."""
    values = {field: stored[column] for field, column in _FIELDS[spec.of].items()}
    if spec.row in STATISTICS_OF:
        values[STATISTICS_OF[spec.row]] = _expand_statistics(stored)
    elif spec.row is r.Optimizer:
        values["learning_rates"] = [float(group["learning_rate"]) for group in stored["groups"]]
    elif spec.row is r.OptimizerEvent:
        values["learning_rates"] = [float(rate) for rate in stored["learning_rates"] or ()]
    elif spec.row is r.Node:
        values["candidates"] = stored["candidates"] or ()
    return row_of(spec.row, values)


def statistics_of(stored: Mapping[str, Any]) -> r.Statistics | None:
    """Read the statistics from the columns of a row; None if they were not measured."""
    listed = _expand_statistics(stored)
    return None if listed is None else msgspec.convert(listed, r.Statistics)


def _expand_statistics(stored: Mapping[str, Any]) -> list[Any] | None:
    if stored["stat_kind"] is None:
        return None
    return [stored["stat_kind" if name == "kind" else name] for name in STATISTICS]


def _streams(stored: Mapping[str, Mapping[str, Any]]) -> Iterator[r.Stream]:
    """Read the output that the record itself has. What came through the pipe is stored beside it."""
    for name in sorted(stored):
        yield msgspec.convert([name, stored[name]["tail"], stored[name]["total_bytes"]], r.Stream)


def _tensor_nodes(transaction: Transaction, key: RunKey) -> Iterator[r.TensorNode]:
    t = tables.tensor
    query = sa.select(t.c.tensor, t.c.node, t.c.output_nr, t.c.node_proof).where(at_key(t, key), t.c.node.is_not(None))
    for row in transaction.execute(query.order_by(t.c.tensor)):
        yield r.TensorNode(tensor=row.tensor, node=row.node, output_nr=row.output_nr, proof=row.node_proof)


_GRADS: Final = {0: "present", chunk_format.GRAD_NONE: "none", chunk_format.GRAD_NOT_READ: "not-read"}


def snapshots_of(chunks: Sequence[Mapping[str, Any]], grad_fns: list[str]) -> Iterator[r.Snapshot]:
    """Decode the snapshots in chunk rows, in the rows' order."""
    if not chunks:
        return
    columns = columns_of(chunks)
    names: list[str | None] = [None, *grad_fns]
    plain: dict[str, list[int]] = {name: column.tolist() for name, column in columns.items() if column.dtype != "<f4"}
    real = {name: numbers(column) for name, column in columns.items() if column.dtype == "<f4"}
    for n, bits in enumerate(plain["flags"]):
        version, grad_id, grad_version = plain["version"][n], plain["grad_id"][n], plain["grad_version"][n]
        yield r.Snapshot(
            tensor=plain["tensor"][n],
            moment=plain["moment"][n],
            **flags_in(bits),
            grad=_GRADS[bits & (chunk_format.GRAD_NONE | chunk_format.GRAD_NOT_READ)],  # pyright: ignore[reportArgumentType]
            grad_fn=names[plain["grad_fn"][n]],
            grad_fn_read=not bits & chunk_format.GRAD_FN_NOT_READ,
            version=None if version == -1 else version,
            grad_id=None if grad_id == -1 else grad_id,
            grad_version=None if grad_version == -1 else grad_version,
            value=_build_statistics(
                "value", n, bits & chunk_format.VALUE_MEASURED, bits & chunk_format.VALUE_SAMPLED, plain, real
            ),
            grad_stats=_build_statistics(
                "grad", n, bits & chunk_format.GRAD_MEASURED, bits & chunk_format.GRAD_SAMPLED, plain, real
            ),
        )


def _build_statistics(
    of: str, n: int, measured: int, sampled: int, plain: Mapping[str, list[int]], real: Mapping[str, list[float | None]]
) -> r.Statistics | None:
    if not measured:
        return None
    return r.Statistics(
        norm=real[f"{of}_norm"][n],
        sum=real[f"{of}_sum"][n],
        min=real[f"{of}_min"][n],
        max=real[f"{of}_max"][n],
        nan=plain[f"{of}_nan"][n],
        inf=plain[f"{of}_inf"][n],
        zeros=plain[f"{of}_zeros"][n],
        counted=plain[f"{of}_counted"][n],
        kind="sampled" if sampled else "exact",
    )


def _header(head: Mapping[str, Any]) -> r.Header:
    names = (
        "schema_version",
        "backprobe_version",
        "tier",
        "entry",
        "started_at",
        "environment",
        "fallbacks",
        "deviations",
    )
    return r.upgrade_header(msgspec.convert({name: head[name] for name in names}, r.Header))


def _end(head: Mapping[str, Any]) -> r.End | None:
    if not head["reached_end"]:
        return None
    return msgspec.convert({name: head[name] for name in r.End.__struct_fields__}, r.End)
