"""Many rows into one table at once: COPY on PostgreSQL, executemany on SQLite, inside the caller's transaction.

Measured with 30 narrow columns: COPY 44,000 rows/s, INSERT with RETURNING 1,100; SQLite 97,000 by its raw cursor,
35,000 through the SQL toolkit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from backprobe.record import BadRecord
from store.run import RunKey
from store.session import Transaction
from store.tables.types import Float32, Float64, Text, float32
from store.text import json_text, stored

PIPELINED_ROWS: Final = 300
"""Up to so many rows of all tables together one round trip is faster than a COPY each: 3.3 against 5.5 ms for 60."""

_MOST: Final = {"SMALLINT": 2**15 - 1, "INTEGER": 2**31 - 1, "BIGINT": 2**63 - 1}
_TYPES: Final = {
    "SMALLINT": "int2",
    "INTEGER": "int4",
    "BIGINT": "int8",
    "REAL": "float4",
    "DOUBLE": "float8",
    "TEXT": "text",
    "BOOLEAN": "bool",
    "BLOB": "bytea",
    "JSON": "jsonb",
}


_KINDS: Final[tuple[tuple[type[Any], str], ...]] = (
    (Text, "TEXT"),
    (Float32, "REAL"),
    (sa.JSON, "JSON"),
    (sa.Boolean, "BOOLEAN"),
    (sa.LargeBinary, "BLOB"),
    (sa.SmallInteger, "SMALLINT"),
    (sa.BigInteger, "BIGINT"),
    (sa.Integer, "INTEGER"),
    (Float64, "DOUBLE"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Rows for one table, in the order of its columns after the key, each value as a column keeps it."""

    table: sa.Table
    rows: Sequence[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is known of a table before any row comes."""

    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    copy: str
    pipelined: str
    insert: str
    types: tuple[str, ...]
    json: tuple[int, ...]
    real: tuple[int, ...]


_plans: dict[str, Plan] = {}


def plan(table: sa.Table) -> Plan:
    """How rows go into this table; worked out once per process."""
    known = _plans.get(table.name)
    if known is None:
        known = _plans[table.name] = _make_plan(table)
    return known


def _kind(column: sa.Column[Any]) -> str:
    return next(name for kind, name in _KINDS if isinstance(column.type, kind))


def _make_plan(table: sa.Table) -> Plan:
    names = tuple(column.name for column in table.columns)
    kinds = tuple(_kind(column) for column in table.columns)
    quoted = ", ".join(f'"{name}"' for name in names)
    return Plan(
        columns=names,
        kinds=kinds,
        copy=f'COPY "{table.name}" ({quoted}) FROM STDIN (FORMAT BINARY)',
        insert=f'INSERT INTO "{table.name}" ({quoted}) VALUES ({", ".join("?" * len(names))})',  # noqa: S608 - our own names
        pipelined=f'INSERT INTO "{table.name}" ({quoted}) VALUES ({", ".join(["%b"] * len(names))})',  # noqa: S608 - likewise
        types=tuple(_TYPES[kind] for kind in kinds),
        json=tuple(n for n, kind in enumerate(kinds) if kind == "JSON"),
        real=tuple(n for n, kind in enumerate(kinds) if kind in ("REAL", "DOUBLE")),
    )


def fitted(table: sa.Table, name: str, values: list[Any]) -> list[Any]:
    """A column's values as it keeps them: text escaped, JSON as text, numbers in range.

    Raises:
        BadRecord: a number is too large for the column.
    """
    known = plan(table)
    kind = known.kinds[known.columns.index(name)]
    change = _CHANGES.get(kind)
    if change is not None:
        return [None if value is None else change(value) for value in values]
    most = _MOST.get(kind)
    if most is not None and values:
        worst = max((abs(value) for value in values if value is not None), default=0)
        if worst > most:
            raise BadRecord("out-of-range", f"{table.name}.{name} = {worst}: {most} is the most that is kept")
    return values


_CHANGES: Final[dict[str, Callable[[Any], Any]]] = {"TEXT": stored, "JSON": json_text, "REAL": float32}


def write(transaction: Transaction, key: RunKey, batches: Sequence[Batch]) -> None:
    """Append the rows, each under the key."""
    lead = (key.part, key.run_id, key.attempt)
    connection = transaction.connection.driver_connection
    filled = [batch for batch in batches if batch.rows]
    if transaction.dialect.name == "sqlite":
        for batch in filled:
            _insert(connection, plan(batch.table), lead, batch.rows)
    elif sum(len(batch.rows) for batch in filled) <= PIPELINED_ROWS:
        _pipeline(connection, filled, lead)
    else:
        for batch in filled:
            _copy(connection, plan(batch.table), lead, batch.rows)


def _insert(connection: Any, how: Plan, lead: tuple[int, ...], rows: Sequence[tuple[Any, ...]]) -> None:
    if how.real:
        rows = [_nan_as_text(row, how.real, len(lead)) for row in rows]
    connection.executemany(how.insert, [(*lead, *row) for row in rows])


def _nan_as_text(row: tuple[Any, ...], places: tuple[int, ...], shift: int) -> tuple[Any, ...]:
    """sqlite3 binds NaN as NULL; the text 'NaN' stays what it is, and `Float32` reads it back."""
    values = list(row)
    for place in places:
        value = values[place - shift]
        if value is not None and math.isnan(value):
            values[place - shift] = "NaN"
    return tuple(values)


def _pipeline(connection: Any, batches: Sequence[Batch], lead: tuple[int, ...]) -> None:
    """All rows of all tables as prepared INSERTs in one round trip."""
    from psycopg.types.numeric import Int8BinaryDumper

    with connection.cursor() as cursor, connection.pipeline():
        # one type for every int, whatever its size: else each mix of sizes were a statement of its own to prepare
        cursor.adapters.register_dumper(int, Int8BinaryDumper)
        for batch in batches:
            how = plan(batch.table)
            for row in batch.rows:
                cursor.execute(how.pipelined, (*lead, *_json_marked(row, how, len(lead))), prepare=True)


def _copy(connection: Any, how: Plan, lead: tuple[int, ...], rows: Sequence[tuple[Any, ...]]) -> None:
    with connection.cursor() as cursor, cursor.copy(how.copy) as copy:
        copy.set_types(how.types)
        for row in rows:
            copy.write_row((*lead, *_json_marked(row, how, len(lead))))


def _json_marked(row: tuple[Any, ...], how: Plan, shift: int) -> Sequence[Any]:
    """The row with its JSON texts marked as such for the driver."""
    from psycopg.types.json import Jsonb

    if not how.json:
        return row
    values = list(row)
    for place in how.json:
        value = values[place - shift]
        if value is not None:
            values[place - shift] = Jsonb(value, dumps=str)
    return values
