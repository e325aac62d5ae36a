# ruff: noqa: S608 - the SQL is made of our own words
"""The view `snapshot`, one row per tensor and moment of what a run shows; on PostgreSQL with its decoders.

Frozen. It imports nothing of ours: that it resembles `store/tables/snapshot_view.py` is on purpose, a revision makes the same
view for ever, whatever that file says later. Code of the release before can write to this schema: no table changes. A
revision that changes `snapshot_chunk` or `run` on PostgreSQL has to drop the view first.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

COLUMNS = {
    "flags": ("<i2", 0),
    "grad_fn": ("<i4", 0),
    "why": ("<i2", 0),
    "grad_dtype": ("<i2", 0),
    "why_site": ("<i4", -1),
    "why_call": ("<i4", -1),
    "version": ("<i4", 0),
    "grad_id": ("<i4", -1),
    "grad_version": ("<i4", -1),
    "value_norm": ("<f4", 2143289345),
    "value_sum": ("<f4", 2143289345),
    "value_min": ("<f4", 2143289345),
    "value_max": ("<f4", 2143289345),
    "grad_norm": ("<f4", 2143289345),
    "grad_sum": ("<f4", 2143289345),
    "grad_min": ("<f4", 2143289345),
    "grad_max": ("<f4", 2143289345),
    "value_nan": ("<i8", 0),
    "value_inf": ("<i8", 0),
    "value_zeros": ("<i8", 0),
    "value_counted": ("<i8", 0),
    "grad_nan": ("<i8", 0),
    "grad_inf": ("<i8", 0),
    "grad_zeros": ("<i8", 0),
    "grad_counted": ("<i8", 0),
    "held_bytes": ("<i8", 0),
}
"""Byte columns of snapshot_chunk: dtype, and the value of one that is NULL."""

NUMBERS = ("version", "grad_id", "grad_version")
STATISTICS = ("norm", "sum", "min", "max", "nan", "inf", "zeros", "counted")
USED = ("flags", "grad_fn", *NUMBERS, *(f"{of}_{name}" for of in ("value", "grad") for name in STATISTICS))
HEADS = "r.public_id AS run, c.part, c.run_id, c.tensor, c.first_moment, c.moment_step, c.version_step, h.grad_fns"
BITS = {"is_leaf": 1, "requires_grad": 2, "retains_grad": 4}
WIDTHS = {"<i2": 2, "<i4": 4, "<i8": 8, "<f4": 4}

_INTEGER = """CREATE FUNCTION i{w}s(b bytea) RETURNS {kind}[]
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
_FLOAT = """CREATE FUNCTION f4s(b bytea) RETURNS real[]
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
_VALUES = {
    2: ("smallint", "u - ((u >> 15) << 16)"),
    4: ("int", "u - ((u >> 31) << 32)"),
    8: ("bigint", "u"),
}


def upgrade() -> None:
    """Make it."""
    for statement in sqlite_view() if op.get_bind().dialect.name == "sqlite" else postgresql_view():
        op.get_bind().exec_driver_sql(statement.replace("%", "%%"))


def downgrade() -> None:
    """Drop it."""
    op.execute(sa.text("DROP VIEW snapshot"))
    if op.get_bind().dialect.name != "sqlite":
        for name in ("i2s", "i4s", "i8s", "f4s"):
            op.execute(sa.text(f"DROP FUNCTION {name}(bytea)"))


def postgresql_view() -> tuple[str, ...]:
    """The decoders and the view, in order."""
    decoders = [_INTEGER.format(w=w, top=w - 1, kind=kind, value=value) for w, (kind, value) in _VALUES.items()]
    arrays = ", ".join(f"{COLUMNS[name][0][1:]}s(c.{name}) AS a_{name}" for name in USED)
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
    """The view."""
    columns = _columns(_sqlite_element, "{0}", "json_extract(grad_fns, '$[' || (nullif({0}, 0) - 1) || ']')")
    digits = ", ".join(f"{_sqlite_digits(name)} AS x_{name}" for name in ("moments", *USED))
    view = (
        f"CREATE VIEW snapshot AS SELECT {columns}\nFROM (SELECT *, {_sqlite_element('flags')} AS flags FROM"
        f"\n(SELECT {HEADS}, k.i, {digits}\nFROM run r CROSS JOIN snapshot_chunk c"
        " ON c.part = r.part AND c.run_id = r.id AND c.attempt = r.result_attempt"
        "\nLEFT JOIN record h ON h.part = c.part AND h.run_id = c.run_id AND h.attempt = c.attempt"
        "\nCROSS JOIN (WITH RECURSIVE counted(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM counted"
        f" WHERE i < {480 - 1}) SELECT i FROM counted) k ON k.i < c.n))"
    )
    return (view,)


def _columns(element: object, boolean: str, named: str) -> str:
    """The view's columns, by how one element is read."""
    assert callable(element)  # noqa: S101 - tells the type
    flags = "flags"
    moment = f"CASE WHEN moment_step <> 0 THEN first_moment + moment_step * i ELSE {element('moments')} END"
    parts = ["run", "part", "run_id", "tensor", f"{moment} AS moment"]
    parts += [f"{boolean.format(f'({flags} & {bit}) <> 0')} AS {name}" for name, bit in BITS.items()]
    parts.append(f"{named.format(element('grad_fn'))} AS grad_fn")
    parts.append(
        f"CASE WHEN ({flags} & {16}) <> 0 THEN 'none' WHEN ({flags} & {32}) <> 0 THEN 'not-read'"
        " ELSE 'present' END AS grad"
    )
    parts.append(f"nullif({element('version')} + version_step * i, -1) AS version")
    parts += [f"nullif({element(name)}, -1) AS {name}" for name in NUMBERS[1:]]
    for of, measured in (("value", 256), ("grad", 512)):
        parts += [
            f"CASE WHEN ({flags} & {measured}) <> 0 THEN {element(f'{of}_{name}')} END AS {of}_{name}"
            for name in STATISTICS
        ]
    return ",\n".join(parts)


def _postgresql_element(name: str) -> str:
    if name == "moments":
        return "a_moments[i + 1]"
    one = f"CASE WHEN cardinality(a_{name}) = 1 THEN a_{name}[1] ELSE a_{name}[i + 1] END"
    return f"({one})" if COLUMNS[name][0] == "<f4" else f"coalesce({one}, {COLUMNS[name][1]})"


def _sqlite_digits(name: str) -> str:
    """The digits of one element; none for a column that is absent."""
    w = WIDTHS["<i4" if name == "moments" else COLUMNS[name][0]]
    return f"hex(substr(c.{name}, 1 + CASE WHEN length(c.{name}) = {w} THEN 0 ELSE {w} * k.i END, {w}))"


def _sqlite_element(name: str) -> str:
    dtype = "<i4" if name == "moments" else COLUMNS[name][0]
    w, digits = WIDTHS[dtype], f"x_{name}"
    if dtype == "<f4":
        return _sqlite_float(digits)
    total = " + ".join(f"({_byte(digits, j)} << {8 * j})" for j in range(w))
    signed = f"({total})" if w == 8 else f"(({total}) - ((({_byte(digits, w - 1)}) >> 7) << {8 * w}))"
    absent = 0 if name == "moments" else COLUMNS[name][1]
    return f"CASE WHEN {digits} = '' THEN {absent} ELSE {signed} END"


def _digit(digits: str, n: int) -> str:
    """Value of the n-th hexadecimal digit, from 1."""
    return f"instr('123456789ABCDEF', substr({digits}, {n}, 1))"


def _byte(digits: str, j: int) -> str:
    return f"({_digit(digits, 2 * j + 1)} * 16 + {_digit(digits, 2 * j + 2)})"


def _sqlite_float(digits: str) -> str:
    """A float32 by its digits, exact: sign, mantissa and powers of two. NaN is the text 'NaN', as in other columns.

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
