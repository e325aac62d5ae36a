"""The record of a run, out of the database and in again: one record file, or a folder of Parquet files."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import msgspec

from backprobe import record as r
from backprobe.record import BadRecord, Record, dumps, loads
from store.database.session import Database
from store.records import storage
from store.records.mapping import plain
from store.runs import lifecycle

MOST_BYTES: Final = 256 << 20
"""Of a record file that is imported; `loads` caps its rows too."""

ROWS: Final = 50_000
"""Rows in one row group of Parquet's."""

_json: Final = msgspec.json.Encoder()


class CannotExport(Exception):
    """Nothing was written. The message is one line for who asked, with a way out."""


def record_of(database: Database, public_id: str, *, tenant_id: int = 1) -> Record:
    """Load the record of a run that has ended.

    Raises:
        CannotExport: there is no such run, or it has no record.
    """
    with database.read() as reading:
        run = lifecycle.get(reading, public_id, tenant_id=tenant_id)
        if run is None:
            raise CannotExport(f"there is no run {public_id!r}; `backprobe runs` lists them")
        if not run.ended:
            raise CannotExport(f"{run.id} is {run.status}; its record is whole when it has ended")
        found = None if run.key is None else storage.load(reading, run.key)
    if found is None:
        raise CannotExport(f"{run.id} has no record: {run.record.state}")
    return found


def write_file(record: Record, target: Path) -> int:
    """Write a record file, as `backprobe run --save` does and `backprobe show` reads; its bytes.

    Raises:
        CannotExport: the file exists.
    """
    if target.exists():
        raise CannotExport(f"{target} exists; name a file that does not")
    draft = target.with_name(f".{target.name}.part")
    try:
        draft.write_bytes(dumps(record))
        draft.rename(target)
    finally:
        draft.unlink(missing_ok=True)
    return target.stat().st_size


def read_file(source: Path) -> Record:
    """Read a record from a file that anybody may have written.

    Raises:
        CannotExport: it cannot be read, is larger than the cap, or is no record.
    """
    try:
        size = source.stat().st_size
        if size > MOST_BYTES:
            raise CannotExport(f"{source} has {size:,} bytes; a record of up to {MOST_BYTES:,} is taken")
        return loads(source.read_bytes(), max_bytes=MOST_BYTES)
    except OSError as error:
        raise CannotExport(f"{source} cannot be read: {error.strerror}") from None
    except BadRecord as error:
        raise CannotExport(f"{source} is not a record that can be read: {error}") from None


def write_parquet(record: Record, target: Path) -> int:
    """Write a new folder with one Parquet file per table of the record, and `header.json`; how many tables.

    Statistics of a tensor are columns of their own (`value_norm`); what has no plain type is JSON text. A table without
    rows has a file too, so that a reader finds its columns.

    Raises:
        CannotExport: the folder exists, or pyarrow is not installed.
    """
    if target.exists():
        raise CannotExport(f"{target} exists; name a folder that does not")
    try:
        pa: Any = import_module("pyarrow")
        pq: Any = import_module("pyarrow.parquet")
    except ImportError:
        raise CannotExport("Parquet needs pyarrow: install backprobe[parquet]") from None
    draft = target.with_name(f".{target.name}.part")
    try:
        draft.mkdir()
        for name, row in r.TABLES.items():
            fields = _fields(row)
            schema = pa.schema([pa.field(column, _type(pa, kind)) for column, _, kind in fields])
            with pq.ParquetWriter(draft / f"{name}.parquet", schema) as writer:
                rows = getattr(record, name)
                for start in range(0, len(rows), ROWS):
                    writer.write_table(_table(pa, schema, fields, rows[start : start + ROWS]))
        told = {"header": msgspec.to_builtins(record.header), "end": msgspec.to_builtins(record.end)}
        (draft / "header.json").write_bytes(_json.encode(told))
        draft.rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return len(r.TABLES)


_Field = tuple[str, tuple[str, ...], str]
"""Name of a column, the attributes that lead to it, its kind."""


def _fields(row: type[Any], path: tuple[str, ...] = (), prefix: str = "") -> list[_Field]:
    found: list[_Field] = []
    for field in msgspec.structs.fields(row):
        kind = _kind(msgspec.inspect.type_info(field.type))
        name = f"{prefix}{field.name}"
        if kind == "statistics":
            stem = "grad" if field.name == "grad_stats" else field.name
            found += _fields(r.Statistics, (*path, field.name), f"{stem}_")
        else:
            found.append((name, (*path, field.name), kind))
    return found


def _kind(info: Any) -> str:
    if isinstance(info, msgspec.inspect.UnionType):
        kinds = {_kind(kind) for kind in info.types if not isinstance(kind, msgspec.inspect.NoneType)}
        return kinds.pop() if len(kinds) == 1 else "json"
    if isinstance(info, msgspec.inspect.StructType):
        return "statistics" if info.cls is r.Statistics else "json"
    plain_kinds: dict[Any, str] = {
        msgspec.inspect.BoolType: "bool",
        msgspec.inspect.IntType: "int",
        msgspec.inspect.FloatType: "float",
        msgspec.inspect.StrType: "text",
        msgspec.inspect.LiteralType: "text",
        msgspec.inspect.BytesType: "bytes",
    }
    return plain_kinds.get(info.__class__, "json")


def _type(pa: Any, kind: str) -> Any:
    makers = {"bool": pa.bool_, "int": pa.int64, "float": pa.float64, "bytes": pa.binary}
    return makers.get(kind, pa.string)()


def _table(pa: Any, schema: Any, fields: Sequence[_Field], rows: Sequence[Any]) -> Any:
    columns = [_column(rows, path, kind) for _, path, kind in fields]
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


def _column(rows: Iterable[Any], path: tuple[str, ...], kind: str) -> list[Any]:
    values: list[Any] = []
    for row in rows:
        value = row
        for name in path:
            value = None if value is None else getattr(value, name)
        values.append(_json.encode(plain(value)).decode() if kind == "json" and value is not None else value)
    return values
