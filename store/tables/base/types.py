"""The column types of every table, the same idea on either database, and the database's own clock."""

from __future__ import annotations

import datetime
import math
import struct
from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from store.database.text import ESCAPE, decode_text, encode_text

_FLOAT32: Final = struct.Struct("<f")


def float32(value: float) -> float:
    """Round to the nearest float32, as a Python float; beyond its range to an infinity of the same sign."""
    try:
        return _FLOAT32.unpack(_FLOAT32.pack(value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def time_text(value: datetime.datetime) -> str:
    """`2026-11-20T19:52:29.123Z`."""
    return value.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03d}Z"


class Time(sa.types.TypeDecorator[str]):
    """A time in UTC with milliseconds: `timestamptz(3)`, on SQLite its ISO text; in Python always the ISO text."""

    impl = sa.String
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[Any]:
        """Return the type on this database."""
        if dialect.name == "postgresql":
            return TIMESTAMP(timezone=True, precision=3)  # `type_descriptor` would forget the precision
        return dialect.type_descriptor(sa.String())

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> Any:
        """As the driver takes it."""
        if value is None or dialect.name != "postgresql":
            return value
        return datetime.datetime.fromisoformat(value)

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> str | None:
        """As Python has it."""
        del dialect
        return time_text(value) if isinstance(value, datetime.datetime) else value


class Text(sa.types.TypeDecorator[str]):
    """Text that may be a stranger's: see `store.database.text`."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> str | None:
        """As the driver takes it."""
        del dialect
        return None if value is None else encode_text(value)

    def result_processor(self, dialect: sa.Dialect, coltype: object) -> Any:
        """As Python has it; one call a value, where `process_result_value` is two: a page of tensors has 1,500."""
        del dialect, coltype
        return _text


def _text(value: str | None) -> str | None:
    return value if value is None or ESCAPE not in value else decode_text(value)


class Float32(sa.types.TypeDecorator[float]):
    """A float32 that may be NaN. SQLite turns NaN into NULL, so there it is the text 'NaN', which sorts above all."""

    impl = sa.REAL
    cache_ok = True

    def process_bind_param(self, value: float | None, dialect: sa.Dialect) -> Any:
        """As the driver takes it."""
        if value is None:
            return None
        return "NaN" if dialect.name == "sqlite" and math.isnan(value) else float32(value)

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> float | None:
        """As Python has it."""
        del dialect
        if value is None:
            return None
        return math.nan if value == "NaN" else float32(value)


class Float64(sa.types.TypeDecorator[float]):
    """A float64 that may be NaN, on SQLite as `Float32`."""

    impl = sa.Double
    cache_ok = True

    def process_bind_param(self, value: float | None, dialect: sa.Dialect) -> Any:
        """As the driver takes it."""
        return "NaN" if value is not None and dialect.name == "sqlite" and math.isnan(value) else value

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> float | None:
        """As Python has it."""
        del dialect
        return math.nan if value == "NaN" else value


Id: Final = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
"""A 64-bit key that the database counts; SQLite does that for INTEGER only, which has 64 bits there."""

Json: Final = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
SECONDS: Final[sa.Double[float]] = sa.Double()
Column = sa.Column[Any]


def _column(kind: Any, name: str, comment: str, *, null: bool = False, **more: Any) -> Column:
    return sa.Column(name, kind, nullable=null, comment=comment, **more)


def i2(name: str, comment: str, *, null: bool = False, default: int | None = None) -> Column:
    """Make a column of 16-bit integers. `default` is for rows that state no value; None: each must state one."""
    more = {} if default is None else {"server_default": str(default)}
    return _column(sa.SmallInteger(), name, comment, null=null, **more)


def i4(name: str, comment: str, *, null: bool = False) -> Column:
    """Make a column of 32-bit integers."""
    return _column(sa.Integer(), name, comment, null=null)


def i8(name: str, comment: str, *, null: bool = False) -> Column:
    """Make a column of 64-bit integers."""
    return _column(sa.BigInteger(), name, comment, null=null)


def f4(name: str, comment: str, *, null: bool = False) -> Column:
    """Make a column of float32."""
    return _column(Float32(), name, comment, null=null)


def f8(name: str, comment: str, *, null: bool = False) -> Column:
    """Make a column of float64."""
    return _column(Float64(), name, comment, null=null)


def text(name: str, comment: str, *, null: bool = False) -> Column:
    """Text of any length."""
    return _column(Text(), name, comment, null=null)


def flag(name: str, comment: str, *, null: bool = False, default: bool | None = None) -> Column:
    """Make a column of booleans. `default` is for rows that state no value; None: each must state one."""
    more = {} if default is None else {"server_default": sa.true() if default else sa.false()}
    return _column(sa.Boolean(), name, comment, null=null, **more)


def blob(name: str, comment: str, *, null: bool = False) -> Column:
    """Bytes."""
    return _column(sa.LargeBinary(), name, comment, null=null)


def json(name: str, comment: str, *, null: bool = False) -> Column:
    """JSON; NULL is SQL's, never JSON's null."""
    return _column(Json, name, comment, null=null)


def time(name: str, comment: str, *, null: bool = False) -> Column:
    """Make a column of times."""
    return _column(Time(), name, comment, null=null)


def identity() -> Column:
    """`id`: the row's number, which never leaves the store."""
    return sa.Column("id", Id, primary_key=True, comment="Number of the row; never shown outside.")


def public_id(prefix: str) -> Column:
    """`public_id`: what the API shows."""
    return _column(
        Text(), "public_id", f"What the API shows: {prefix}_ and a UUIDv7 in base32, or a fixed word.", unique=True
    )


def refers(name: str, table: str, comment: str, *, null: bool = False) -> Column:
    """Make a foreign key to another table's `id`."""
    return sa.Column(name, sa.BigInteger(), sa.ForeignKey(f"{table}.id"), nullable=null, comment=comment)


def is_one_of(name: str, values: Sequence[str]) -> sa.CheckConstraint:
    """Make the check that a text column holds one of these values."""
    return sa.CheckConstraint(f"{name} in ({', '.join(repr(value) for value in values)})", name=name)


def _seconds(value: Any) -> sa.ColumnElement[float]:
    return sa.cast(value, SECONDS)


class Now(FunctionElement[str]):
    """The database's clock, read when the statement runs; `Now(seconds)` is so much later (or earlier)."""

    type = Time()
    inherit_cache = True
    name = "now"

    def __init__(self, seconds: Any = None) -> None:
        super().__init__(*([] if seconds is None else [_seconds(seconds)]))


class Moved(FunctionElement[str]):
    """A time of the database, so many seconds later (or earlier): `Moved(column, seconds)`."""

    type = Time()
    inherit_cache = True
    name = "moved"

    def __init__(self, at: sa.ColumnElement[Any], seconds: Any) -> None:
        super().__init__(at, _seconds(seconds))


@compiles(Moved, "postgresql")
def _moved_postgresql(element: Moved, compiler: Any, **kw: Any) -> str:
    at, seconds = (compiler.process(clause, **kw) for clause in element.clauses)
    return f"({at} + make_interval(secs => {seconds}))"


@compiles(Moved, "sqlite")
def _moved_sqlite(element: Moved, compiler: Any, **kw: Any) -> str:
    at, seconds = (compiler.process(clause, **kw) for clause in element.clauses)
    return f"strftime('%Y-%m-%dT%H:%M:%fZ', {at}, format('%+.3f seconds', {seconds}))"


@compiles(Now, "postgresql")
def _now_postgresql(element: Now, compiler: Any, **kw: Any) -> str:
    shift = compiler.process(element.clauses, **kw)
    clock = "date_trunc('milliseconds', clock_timestamp())"  # not rounded up: a time written now has come now
    return clock if not shift else f"({clock} + make_interval(secs => {shift}))"


@compiles(Now, "sqlite")
def _now_sqlite(element: Now, compiler: Any, **kw: Any) -> str:
    shift = compiler.process(element.clauses, **kw)
    iso = "'%Y-%m-%dT%H:%M:%fZ'"
    if not shift:
        return f"strftime({iso}, 'now')"
    return f"strftime({iso}, 'now', format('%+.3f seconds', {shift}))"
