"""Records of every shape that the tables can keep, and when two of them are the same."""

import math

import msgspec
import pytest
import sqlalchemy as sa
from hypothesis import strategies as st

from backprobe import record as r
from backprobe.record.integrity import REFERENCES
from store.records.mapping import SPECS

SMALL = 2**15 - 1
MEDIUM = 2**31 - 1


def most_of(table: str, field: str) -> int:
    """The largest number that this field's column holds."""
    for spec in SPECS:
        if spec.of == table and field in spec.fields():
            kind = spec.table.c[spec.fields()[field]].type
            return (
                SMALL if isinstance(kind, sa.SmallInteger) else 2**63 - 1 if isinstance(kind, sa.BigInteger) else MEDIUM
            )
    return MEDIUM if table in ("snapshots", "tensor_nodes") else 2**63 - 1


def real32(value):
    return 0.0 if value == 0 else math.nan if math.isnan(value) else value  # one zero, one NaN


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["", "x", "\0", "\x1a0", "a\0\x1ab"]
)
FLOATS = st.floats(width=32).map(real32)


def of_type(info, most=2**63 - 1):
    """A strategy for a msgspec type, small in size and hostile in content."""
    match info:
        case msgspec.inspect.UnionType():
            return st.one_of([of_type(kind, most) for kind in info.types])
        case msgspec.inspect.NoneType():
            return st.none()
        case msgspec.inspect.BoolType():
            return st.booleans()
        case msgspec.inspect.IntType():
            low = -most if info.ge is None else max(-most, info.ge)
            high = most if info.le is None else min(most, info.le)
            return st.integers(low, high) | st.integers(max(low, -9), 9)
        case msgspec.inspect.FloatType():
            return FLOATS if info.le is None else FLOATS.filter(math.isfinite)
        case msgspec.inspect.StrType():
            return TEXTS
        case msgspec.inspect.LiteralType():
            return st.sampled_from(info.values)
        case msgspec.inspect.VarTupleType():
            return st.lists(of_type(info.item_type, most), max_size=3).map(tuple)
        case msgspec.inspect.DictType():
            return st.dictionaries(TEXTS, of_type(info.value_type), max_size=2)
        case msgspec.inspect.BytesType():
            return st.binary(max_size=16)
        case msgspec.inspect.StructType():
            return struct(info.cls)
    raise AssertionError(info)


def struct(cls, most=lambda _: 2**63 - 1, **given):
    """A strategy for a struct; `given` fields are drawn from these instead."""
    fields = {
        field.name: given.get(field.name, of_type(msgspec.inspect.type_info(field.type), most(field.name)))
        for field in msgspec.structs.fields(cls)
    }
    return st.builds(cls, **fields)


@st.composite
def records(draw):
    """A whole record whose references hold, with every field of every row anything its column can keep."""
    counts = {table: draw(st.integers(0, 3)) for table in r.TABLES}
    counts |= {"sources": 1, "threads": 1, "moments": 1 + counts["moments"]}
    built = {}
    for table, row in r.TABLES.items():
        key, references = r.KEYS[table], REFERENCES.get(table, {})
        rows = {}
        for n in range(counts[table]):
            given = {}
            for field, target in references.items():
                known = [getattr(row_, r.KEYS[target][0]) for row_ in built.get(target, ())]
                if target == table:
                    known = [row[0] for row in rows]
                optional = any(f.name == field and not f.required for f in msgspec.structs.fields(row))
                if not known and not optional and not may_be_none(row, field):
                    break
                options = [st.sampled_from(known)] if known else []
                options += [st.none()] if may_be_none(row, field) else []
                given[field] = st.one_of(options) if options else st.just(0)
            else:
                given |= {
                    name: st.just(n)
                    for name in key
                    if name not in references and name not in ("slot", "of", "why", "name")
                }
                if table == "small_values":
                    given |= {
                        "dtype": st.just("int8"),
                        "shape": st.just((3,)),
                        "elements": st.binary(min_size=3, max_size=3),
                    }
                if "thread" in references:
                    given["thread"] = st.just(0)
                drawn = draw(struct(row, lambda field, table=table: most_of(table, field), **given))
                rows[tuple(getattr(drawn, name) for name in key)] = drawn
        built[table] = tuple(rows[row] for row in sorted(rows))
    end = draw(st.none() | struct(r.End))
    return r.Record(
        header=draw(
            struct(r.Header, schema_version=st.just(r.SCHEMA_VERSION), first_version=st.sampled_from([None, 1]))
        ),
        end=end,
        **built,
    )


def may_be_none(row, field) -> bool:
    kind = next(msgspec.inspect.type_info(entry.type) for entry in msgspec.structs.fields(row) if entry.name == field)
    return isinstance(kind, msgspec.inspect.UnionType)


@pytest.fixture(scope="session")
def any_record():
    """Hypothesis strategy of records."""
    return records()


def canonical(value):
    """A value in which equal NaNs are equal and the order of a dict does not count."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, dict):
        return sorted((key, canonical(item)) for key, item in value.items())
    if isinstance(value, msgspec.Struct):
        return [type(value).__name__, *(canonical(getattr(value, name)) for name in value.__struct_fields__)]
    if isinstance(value, tuple | list):
        return [canonical(item) for item in value]
    return value


@pytest.fixture(scope="session")
def same():
    """`same(a, b)`: the records are equal; else which tables differ."""

    def compare(first, other):
        names = first.__struct_fields__
        return [n for n in names if canonical(getattr(first, n)) != canonical(getattr(other, n))]

    return compare
