"""The view `snapshot`: one row per tensor and moment of what a run shows, for anybody with SQL.

PostgreSQL decodes a byte column once per chunk, and only one that is asked for; `OFFSET 0` and `a.n` keep the planner
from doing it per row. SQLite decodes element by element with nothing registered, so the stock shell can read it too.
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from sqlalchemy import event

from backprobe.record.state_flags import BITS
from store.records.chunk_format import (
    CHUNK,
    COLUMNS,
    GRAD_MEASURED,
    GRAD_NONE,
    GRAD_NOT_READ,
    VALUE_MEASURED,
)
from store.tables.base.metadata import METADATA

NUMBERS: Final = ("version", "grad_id", "grad_version")
STATISTICS: Final = ("norm", "sum", "min", "max", "nan", "inf", "zeros", "counted")
USED: Final = ("flags", "grad_fn", *NUMBERS, *(f"{of}_{name}" for of in ("value", "grad") for name in STATISTICS))
HEADS: Final = (
    "r.public_id AS run, c.part, c.run_id, c.tensor, c.first_moment, c.moment_step, c.version_step, h.grad_fns"
)
WIDTHS: Final = {"<i2": 2, "<i4": 4, "<i8": 8, "<f4": 4}

_INTEGER: Final = """CREATE FUNCTION i{w}s(b bytea) RETURNS {kind}[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $body$
DECLARE
  n int := length(b) / {w};
  v {kind}[] := array_fill(NULL::{kind}, ARRAY[n]);
  u bigint;
BEGIN
  b := b || ''::bytea;
  FOR i IN 0 .. n - 1 LOOP
    u := 0;
    FOR j IN REVERSE {top} .. 0 LOOP
      u := (u << 8) | get_byte(b, i * {w} + j);
    END LOOP;
    v[i + 1] := {value};
  END LOOP;
  RETURN v;
END $body$"""
_FLOAT: Final = """CREATE FUNCTION f4s(b bytea) RETURNS real[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $body$
DECLARE
  n int := length(b) / 4;
  v real[] := array_fill(NULL::real, ARRAY[n]);
  m int;
  e int;
  s int;
BEGIN
  b := b || ''::bytea;
  FOR i IN 0 .. n - 1 LOOP
    s := 1 - 2 * (get_byte(b, 4 * i + 3) >> 7);
    e := ((get_byte(b, 4 * i + 3) & 127) << 1) | (get_byte(b, 4 * i + 2) >> 7);
    m := ((get_byte(b, 4 * i + 2) & 127) << 16) | (get_byte(b, 4 * i + 1) << 8) | get_byte(b, 4 * i);
    IF e = 255 THEN
      IF m = 0 THEN
        v[i + 1] := s * 'Infinity'::real;
      ELSIF m <> 4194305 THEN
        v[i + 1] := 'NaN';
      END IF;
    ELSIF e = 0 THEN
      v[i + 1] := s * m * power(2::float8, -149);
    ELSE
      v[i + 1] := s * (m + 8388608) * power(2::float8, e - 150);
    END IF;
  END LOOP;
  RETURN v;
END $body$"""
_VALUES: Final = {
    2: ("smallint", "u - ((u >> 15) << 16)"),
    4: ("int", "u - ((u >> 31) << 32)"),
    8: ("bigint", "u"),
}


def postgresql_view() -> tuple[str, ...]:
    """Return the statements that create the decoders and the view, in order."""
    decoders = [_INTEGER.format(w=w, top=w - 1, kind=kind, value=value) for w, (kind, value) in _VALUES.items()]
    arrays = ", ".join(f"{COLUMNS[name].dtype[1:]}s(c.{name}) AS a_{name}" for name in USED)
    columns = _columns(
        _postgresql_element, "CASE WHEN {0} THEN true ELSE false END", "grad_fns ->> (nullif({0}, 0) - 1)"
    )
    view = (
        f"CREATE VIEW snapshot AS SELECT {columns}\nFROM (SELECT {HEADS}, a.*, k.i,"
        f" {_postgresql_element('flags')} AS flags\nFROM run r JOIN snapshot_chunk c"
        " ON c.part = r.part AND c.run_id = r.id AND c.attempt = r.result_attempt"
        "\nLEFT JOIN record h ON h.part = c.part AND h.run_id = c.run_id AND h.attempt = c.attempt"
        f"\nCROSS JOIN LATERAL (SELECT c.n, i4s(c.moments) AS a_moments, {arrays} OFFSET 0) a"
        "\nCROSS JOIN LATERAL (SELECT generate_series(0, a.n - 1) AS i) k) s"
    )
    return (*decoders, _FLOAT, view)


def sqlite_view() -> tuple[str, ...]:
    """Return the statement that creates the view."""
    columns = _columns(_sqlite_element, "{0}", "json_extract(grad_fns, '$[' || (nullif({0}, 0) - 1) || ']')")
    digits = ", ".join(f"{_sqlite_digits(name)} AS x_{name}" for name in ("moments", *USED))
    view = (
        f"CREATE VIEW snapshot AS SELECT {columns}\nFROM (SELECT *, {_sqlite_element('flags')} AS flags FROM"  # noqa: S608 - built from constants only
        f"\n(SELECT {HEADS}, k.i, {digits}\nFROM run r CROSS JOIN snapshot_chunk c"
        " ON c.part = r.part AND c.run_id = r.id AND c.attempt = r.result_attempt"
        "\nLEFT JOIN record h ON h.part = c.part AND h.run_id = c.run_id AND h.attempt = c.attempt"
        "\nCROSS JOIN (WITH RECURSIVE counted(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM counted"
        f" WHERE i < {CHUNK - 1}) SELECT i FROM counted) k ON k.i < c.n))"
    )
    return (view,)


def _columns(element: object, boolean: str, named: str) -> str:
    """Return the view's columns. The arguments say how one element is read."""
    assert callable(element)  # noqa: S101 - tells the type
    flags = "flags"
    moment = f"CASE WHEN moment_step <> 0 THEN first_moment + moment_step * i ELSE {element('moments')} END"
    parts = ["run", "part", "run_id", "tensor", f"{moment} AS moment"]
    parts += [f"{boolean.format(f'({flags} & {bit}) <> 0')} AS {name}" for name, bit in BITS.items()]
    parts.append(f"{named.format(element('grad_fn'))} AS grad_fn")
    parts.append(
        f"CASE WHEN ({flags} & {GRAD_NONE}) <> 0 THEN 'none' WHEN ({flags} & {GRAD_NOT_READ}) <> 0 THEN 'not-read'"
        " ELSE 'present' END AS grad"
    )
    parts.append(f"nullif({element('version')} + version_step * i, -1) AS version")
    parts += [f"nullif({element(name)}, -1) AS {name}" for name in NUMBERS[1:]]
    for of, measured in (("value", VALUE_MEASURED), ("grad", GRAD_MEASURED)):
        parts += [
            f"CASE WHEN ({flags} & {measured}) <> 0 THEN {element(f'{of}_{name}')} END AS {of}_{name}"
            for name in STATISTICS
        ]
    return ",\n".join(parts)


def _postgresql_element(name: str) -> str:
    if name == "moments":
        return "a_moments[i + 1]"
    element = f"CASE WHEN cardinality(a_{name}) = 1 THEN a_{name}[1] ELSE a_{name}[i + 1] END"
    return f"({element})" if COLUMNS[name].dtype == "<f4" else f"coalesce({element}, {COLUMNS[name].absent})"


def _sqlite_digits(name: str) -> str:
    """Return the SQL for the digits of one element; they are empty for a column that is absent."""
    w = WIDTHS["<i4" if name == "moments" else COLUMNS[name].dtype]
    return f"hex(substr(c.{name}, 1 + CASE WHEN length(c.{name}) = {w} THEN 0 ELSE {w} * k.i END, {w}))"


def _sqlite_element(name: str) -> str:
    dtype = "<i4" if name == "moments" else COLUMNS[name].dtype
    w, digits = WIDTHS[dtype], f"x_{name}"
    if dtype == "<f4":
        return _sqlite_float(digits)
    total = " + ".join(f"({_byte(digits, j)} << {8 * j})" for j in range(w))
    signed = f"({total})" if w == 8 else f"(({total}) - ((({_byte(digits, w - 1)}) >> 7) << {8 * w}))"
    absent = 0 if name == "moments" else COLUMNS[name].absent
    return f"CASE WHEN {digits} = '' THEN {absent} ELSE {signed} END"


def _digit(digits: str, n: int) -> str:
    """Value of the n-th hexadecimal digit, from 1."""
    return f"instr('123456789ABCDEF', substr({digits}, {n}, 1))"


def _byte(digits: str, j: int) -> str:
    return f"({_digit(digits, 2 * j + 1)} * 16 + {_digit(digits, 2 * j + 2)})"


def _sqlite_float(digits: str) -> str:
    """Return the exact SQL for a float32 from its digits: sign, mantissa, powers of two. NaN is the text 'NaN'.

    Source:
        IEEE 754-2019, binary32: 1 sign, 8 exponent (bias 127), 23 mantissa bits.
    """
    fifth, seventh, eighth = (_digit(digits, n) for n in (5, 7, 8))
    mantissa = f"((({fifth} & 7) * 16 + {_digit(digits, 6)}) * 65536 + {_byte(digits, 1)} * 256 + {_byte(digits, 0)})"
    lowest = f"({seventh} & 7) = 0 AND {eighth} = 0 AND {fifth} < 8"
    highest = f"({seventh} & 7) = 7 AND {eighth} = 15 AND {fifth} > 7"
    powers = " ".join(f"WHEN {n} THEN {2.0 ** (32 * n)!r}" for n in range(8))
    return (
        f"CASE WHEN {digits} IN ('', '0100C07F') THEN NULL WHEN {digits} = '00000000' THEN 0.0"
        f" WHEN {digits} = '0000807F' THEN 9e999 WHEN {digits} = '000080FF' THEN -9e999 WHEN {highest} THEN 'NaN'"
        f" ELSE (1 - 2 * ({seventh} >> 3))"
        f" * CASE WHEN {lowest} THEN 2 * {mantissa} ELSE {mantissa} + 8388608 END"
        f" * CASE {seventh} & 7 {powers} END * (1 << (2 * {eighth})) * (1 << ({fifth} >> 3)) * {2.0**-150!r} END"
    )


def _create_with(statements: tuple[str, ...], dialect: str) -> None:
    for statement in statements:
        event.listen(METADATA, "after_create", sa.DDL(statement.replace("%", "%%")).execute_if(dialect=dialect))


_create_with(sqlite_view(), "sqlite")
_create_with(postgresql_view(), "postgresql")
