# ruff: noqa: S608 - the SQL is built from constants only
"""Months of the record tables on PostgreSQL: made ahead, looked for, dropped. On SQLite there are none.

1. A month's partitions are made all at once, under a lock, before a run of it exists.
2. They are dropped when no run of the month is unfinished and none keeps its record; what was begun is finished later.
3. Only the past is dropped. Whoever begins a run of a past month holds off its end until he has committed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from store.database.session import Database, Transaction
from store.records.expiry.sweep import RECORD_TABLES
from store.runs.transitions import in_status
from store.tables import Now, record, run

AHEAD: Final = 2
"""Months that are made before they come."""

WAIT_SECONDS: Final = 31 * 86400.0
"""The rows of expired records stay for the end of their month if that is no further away."""

PATIENCE_MS: Final = 1000
"""How long the end of a month waits for those who read: then it is tried again."""

_LOCK: Final = 0x6261_636D_6F6E_7468
_GOING: Final = "Past its time: to be dropped."
_PARENTS: Final = (record.name, *(table.name for table in RECORD_TABLES if table is not record))
"""The head first: where it has a month, all have."""

_NOW: Final = (
    "(select (extract(year from n) - 2020) * 12 + extract(month from n) - 1"
    " from (select clock_timestamp() at time zone 'utc' as n) s)"
)
_IS_THERE: Final = sa.text(
    "select exists (select 1 from pg_inherits where inhrelid = to_regclass(:head) and not inhdetachpending),"
    f" :part < {_NOW}"
)
_THIS_MONTH: Final = sa.text(f"select cast({_NOW} as integer)")
_ATTACHED: Final = sa.text(
    "select p.relname as parent, c.relname as name, pg_get_expr(c.relpartbound, c.oid) as bound from pg_inherits i"
    " join pg_class p on p.oid = i.inhparent join pg_class c on c.oid = i.inhrelid"
    " where p.relname = any(:parents) and p.relnamespace = current_schema()::regnamespace and not i.inhdetachpending"
)
_BEGUN: Final = (
    "select c.relname, p.relname, coalesce(i.inhdetachpending, false)"
    " from pg_class c join pg_description d on d.objoid = c.oid and d.objsubid = 0"
    " left join pg_inherits i on i.inhrelid = c.oid left join pg_class p on p.oid = i.inhparent"
    f" where d.description = '{_GOING}' and c.relnamespace = current_schema()::regnamespace"
    f" order by p.relname is distinct from '{record.name}'"
)
_kept: Final = run.c.record_state.in_([sa.literal_column("'partial'"), sa.literal_column("'whole'")])


@dataclass(frozen=True, slots=True, kw_only=True)
class Month:
    """A partition of every record table: its name without the table's, and months since 2020-01 that lie in it."""

    name: str
    months: tuple[int, ...]


def name_of(part: int) -> str:
    """Return what follows the table in the names of a month's partitions: `2026_11`."""
    return f"{2020 + part // 12}_{part % 12 + 1:02}"


def tables_and_partitions(reading: Transaction) -> tuple[list[str], list[str]]:
    """Names of tables: those that are no partition, and those that hold rows."""
    query = (
        "select relname, relispartition, relkind = 'p' from pg_class"
        " where relkind in ('r', 'p') and relnamespace = current_schema()::regnamespace order by relname"
    )
    found = reading.execute(sa.text(query)).all()
    return [name for name, part, _ in found if not part], [name for name, _, parent in found if not parent]


def list_attached_months(reading: Transaction) -> tuple[Month, ...]:
    """List the months that have a partition, oldest first."""
    found = {row.name: row.bound for row in _rows(reading) if row.parent == record.name}
    months = (Month(name=name.removeprefix(f"{record.name}_"), months=_months(bound)) for name, bound in found.items())
    return tuple(sorted(months, key=lambda month: month.months))


def months_ahead(reading: Transaction) -> int:
    """How many months from this one on are there without a gap: 0, this one is missing."""
    there, this = {month for partition in list_attached_months(reading) for month in partition.months}, _this(reading)
    return next(n for n in range(len(there) + 1) if this + n not in there)


def ensure(transaction: Transaction, part: int) -> None:
    """Make the partitions for a new run of this month, unless they exist. Call it before anything is written."""
    if transaction.dialect.name == "sqlite":
        return
    head = {"head": f'"{record.name}_{name_of(part)}"', "part": part}
    there, is_past = transaction.execute(_IS_THERE, head).one()
    if there and not is_past:
        return
    if there:
        transaction.execute(sa.text("select pg_advisory_xact_lock_shared(:key)"), {"key": _LOCK})
        if transaction.execute(_IS_THERE, head).one()[0]:
            return  # who would drop it must wait for us, and then finds our run
    _make(transaction, part)


def make_ahead(database: Database) -> None:
    """Make this month and the next ones, where they are missing."""
    if database.sqlite:
        return
    with database.read() as reading:
        there = {month for partition in list_attached_months(reading) for month in partition.months}
        this = _this(reading)
    for part in sorted({this + n for n in range(AHEAD + 1)} - there):
        with database.begin() as transaction:
            _make(transaction, part)


def going(reading: Transaction) -> frozenset[int]:
    """Past months whose records all go within `WAIT_SECONDS`: their rows are left for the end of the month."""
    if reading.dialect.name == "sqlite":
        return frozenset()
    late = sa.and_(_kept, run.c.kept_until > Now(WAIT_SECONDS))
    pinned = sa.and_(_kept, run.c.pinned)
    return frozenset(
        month
        for partition in _past(reading)
        if not _any(reading, partition, (late, pinned))
        for month in partition.months
    )


def drop(database: Database) -> tuple[Month, ...]:
    """Drop the past months in which nothing is kept and nothing runs; and finish what was begun. Those that went.

    It waits a second for those who read, and gives up for now.
    """
    if database.sqlite:
        return ()
    connection: Any = database.listen()
    try:
        connection.execute(f"set statement_timeout = {PATIENCE_MS}")
        (held,) = connection.execute("select pg_try_advisory_lock(%s)", [_LOCK]).fetchone()
        return _drop_months(database, connection) if held else ()
    finally:
        connection.close()


def _drop_months(database: Database, connection: Any) -> tuple[Month, ...]:
    import psycopg

    busy = (in_status("queued"), in_status("running"), _kept)
    with database.read() as reading:
        there = list_attached_months(reading)
        over = tuple(partition for partition in _past(reading) if not _any(reading, partition, busy))
    stay = {partition.name for partition in there} - {partition.name for partition in over}
    for partition in over:
        for parent in _PARENTS:
            connection.execute(f"comment on table \"{parent}_{partition.name}\" is '{_GOING}'")
    until = time.monotonic() + PATIENCE_MS / 1000
    try:
        for name, parent, pending in connection.execute(_BEGUN).fetchall():
            if parent is not None and not pending and name.removeprefix(f"{parent}_") in stay:
                connection.execute(f'comment on table "{name}" is null')  # a run has begun since
            elif time.monotonic() < until:
                _end(connection, name, parent, pending=pending)
    except (psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable):
        pass  # somebody reads; what has begun is marked
    left = {name for name, _, _ in connection.execute(_BEGUN).fetchall()}
    return tuple(partition for partition in over if not any(name.endswith(partition.name) for name in left))


def _end(connection: Any, name: str, parent: str | None, *, pending: bool) -> None:
    if parent is not None:
        how = "finalize" if pending else "concurrently"
        connection.execute(f'alter table "{parent}" detach partition "{name}" {how}')
    connection.execute(f'drop table "{name}"')


def _past(reading: Transaction) -> list[Month]:
    this = _this(reading)
    return [partition for partition in list_attached_months(reading) if max(partition.months) < this]


def _any(reading: Transaction, partition: Month, kinds: Iterable[sa.ColumnElement[bool]]) -> bool:
    """Return whether a run of the month is of one of these kinds, by one query for each so that an index serves it."""
    of = run.c.part.in_(partition.months)
    return any(reading.execute(sa.select(run.c.id).where(of, kind).limit(1)).first() is not None for kind in kinds)


def _this(reading: Transaction) -> int:
    return reading.execute(_THIS_MONTH).scalar_one()


def _rows(reading: Transaction) -> Sequence[Any]:
    return reading.execute(_ATTACHED, {"parents": list(_PARENTS)}).all()


def _months(bound: str) -> tuple[int, ...]:
    """Of `FOR VALUES IN ('81', '82')`."""
    return tuple(sorted(map(int, re.findall(r"-?\d+", bound))))


def _make(transaction: Transaction, part: int) -> None:
    """Make what is missing of a month. ATTACH, not PARTITION OF: who reads or writes other months goes on meanwhile."""
    transaction.execute(sa.text("select pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    there = {row.parent for row in _rows(transaction) if part in _months(row.bound)}
    begun = {name for name, _, _ in transaction.exec_driver_sql(_BEGUN)}
    for parent in _PARENTS:
        if parent in there:
            continue
        name = f"{parent}_{name_of(part)}"
        if name in begun:  # its end had come as far as this
            transaction.exec_driver_sql(f'DROP TABLE "{name}"')
        for statement in (
            f'CREATE TABLE "{name}" (LIKE "{parent}" INCLUDING ALL EXCLUDING COMMENTS)',
            f'ALTER TABLE "{parent}" ATTACH PARTITION "{name}" FOR VALUES IN ({part})',
        ):
            transaction.exec_driver_sql(statement)
