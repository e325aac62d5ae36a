"""The database of a test, SQLite and PostgreSQL alike; records of every shape; what a run needs to begin and end.

1. Every test that takes `database` runs twice, on a database of its own that is gone afterwards.
2. No test sleeps: a lease of less than nothing has run out, and rows are moved in time by hand.
"""

import math
import os
import shutil
import uuid
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import msgspec
import pytest
import sqlalchemy as sa
from hypothesis import strategies as st

from backprobe import record as r
from backprobe.record.integrity import REFERENCES
from backprobe.rules import Finding, Judgement, Location, NotRun, Region, WhyNone
from backprobe.rules.finding import RuleName
from store import finish, runs
from store.migrate import upgrade
from store.row_spec import SPECS
from store.session import Database

POSTGRES = os.environ.get("BACKPROBE_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/postgres")


def in_database(name: str) -> str:
    return urlunsplit(urlsplit(POSTGRES)._replace(path=f"/{name}"))


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("template") / "backprobe.db"
    upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def postgres_template(require):
    require("postgres")
    import psycopg

    name = f"backprobe_template_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(POSTGRES, autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}"')
        try:
            upgrade(in_database(name))
            yield admin, name
        finally:
            admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request, tmp_path):
    """URL of a migrated database of this test's own."""
    if request.param == "sqlite":
        path = tmp_path / "backprobe.db"
        shutil.copy(request.getfixturevalue("sqlite_template"), path)
        yield f"sqlite:///{path}"
        return
    admin, template = request.getfixturevalue("postgres_template")
    name = f"backprobe_test_{uuid.uuid4().hex[:12]}"
    admin.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    try:
        yield in_database(name)
    finally:
        admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture
def database(database_url):
    database = Database(database_url)
    yield database
    database.close()


@pytest.fixture
def submit(database):
    """`submit(priority=0)`: a queued run; any field of `Submission`."""

    def queued(**fields):
        fields = {"files": {"train.py": "x = 1\n"}, "entry": "train.py"} | fields
        with database.begin() as transaction:
            return runs.submit(transaction, runs.Submission(**fields))

    return queued


@pytest.fixture
def look(database):
    """`look(run)`: the run as it is now."""

    def now(run):
        with database.read() as reading:
            return runs.get(reading, getattr(run, "public_id", None) or run.id)

    return now


@pytest.fixture
def claim(database):
    """`claim()`: a claim by worker w1 with a lease of 30 s."""
    return lambda **asked: runs.claim(database, asked.pop("worker", "w1"), **asked)


@pytest.fixture
def change(database):
    """`change(run, priority=3)`: write columns of a run past the store, as nobody but a test may."""

    def written(run, **columns):
        from store import tables

        with database.begin() as transaction:
            which = tables.run.c.public_id == (getattr(run, "public_id", None) or run.id)
            transaction.execute(sa.update(tables.run).where(which).values(**columns))

    return written


@pytest.fixture
def ended(database, submit, claim, a_record):
    """`ended(record)`: a run that succeeded with this record."""

    def one(record=None, judgement=None, whys=None, ending=None, **submission):
        submit(**submission)
        held = claim()
        good = finish.Ending(status="succeeded", exit_code=0)
        assert finish.finish(database, held, ending or good, record or a_record, judgement, whys)
        with database.read() as reading:
            return runs.get(reading, held.public_id)

    return one


# --- records -------------------------------------------------------------------------------------------------------

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
            return st.one_of([of_type(one, most) for one in info.types])
        case msgspec.inspect.NoneType():
            return st.none()
        case msgspec.inspect.BoolType():
            return st.booleans()
        case msgspec.inspect.IntType():
            low = -most if info.ge is None or info.ge < 0 else info.ge
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
                known = [getattr(one, r.KEYS[target][0]) for one in built.get(target, ())]
                if target == table:
                    known = [one[0] for one in rows]
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
                one = draw(struct(row, lambda field, table=table: most_of(table, field), **given))
                rows[tuple(getattr(one, name) for name in key)] = one
        built[table] = tuple(rows[one] for one in sorted(rows))
    end = draw(st.none() | struct(r.End))
    return r.Record(
        header=draw(
            struct(r.Header, schema_version=st.just(r.SCHEMA_VERSION), first_version=st.sampled_from([None, 1]))
        ),
        end=end,
        **built,
    )


def may_be_none(row, field) -> bool:
    kind = next(msgspec.inspect.type_info(one.type) for one in msgspec.structs.fields(row) if one.name == field)
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

    def compare(one, other):
        names = one.__struct_fields__
        return [n for n in names if canonical(getattr(one, n)) != canonical(getattr(other, n))]

    return compare


HEADER = r.Header(
    schema_version=r.SCHEMA_VERSION,
    backprobe_version="0.1.0",
    tier="full",
    entry="service",
    started_at="2026-11-21T00:00:00.000Z",
    environment=r.Environment(python="3.11.7", platform="Linux", torch="2.13.0+cpu"),
)
SOURCE = "import torch\nx = torch.ones(3)\nw = torch.ones(3, requires_grad=True)\ny = x * w\ny.sum().backward()\n"


def snapshot(tensor, moment, **fields):
    base = {"is_leaf": True, "requires_grad": False, "retains_grad": False, "grad": "none", "version": 0}
    return r.Snapshot(tensor=tensor, moment=moment, **(base | fields))


@pytest.fixture(scope="session")
def a_record() -> r.Record:
    """x (leaf, needs no grad), w (leaf), y (non-leaf); one backward call that frees the graph and fills w.grad."""
    lines = ((2, ("x",)), (3, ("w",)), (4, ("y",)), (5, ()))
    sites = [
        r.Site(
            site=n,
            source=0,
            line=line,
            col=1,
            end_line=line,
            end_col=9,
            kind="assign" if names else "call",
            targets=names,
        )
        for n, (line, names) in enumerate(lines)
    ]
    moments = [r.Moment(moment=n, kind="after-statement", time_ns=n, site=n) for n in range(3)]
    moments += [
        r.Moment(moment=3, kind="before-backward", time_ns=3, site=3),
        r.Moment(moment=4, kind="after-backward", time_ns=4, site=3),
        r.Moment(moment=5, kind="end", time_ns=5),
    ]
    kept = {"dtype": "torch.float32", "device": "cpu", "layout": "torch.strided", "cls": "Tensor", "shape": (3,)}
    made = [
        r.Tensor(tensor=n, moment=n, site=n, numel=3, size_bytes=12, created_by=by, created_how=how, **kept)
        for n, (by, how) in enumerate([("user", "torch.ones"), ("user", "torch.ones"), ("op", "MulBackward0")])
    ]
    ones = r.Statistics(norm=1.75, sum=3.0, min=1.0, max=1.0, counted=3)
    return r.Record(
        header=HEADER,
        end=r.End(ending="ended", exit_code=0, duration_ns=9),
        sources=(r.Source(source=0, path="train.py", sha256="0" * 64, text=SOURCE),),
        sites=tuple(sites),
        threads=(r.Thread(thread=0, name="MainThread", main=True),),
        moments=tuple(moments),
        tensors=tuple(made),
        nodes=(
            r.Node(node=0, type="MulBackward0", thread=0, first_seen=3, seq=0, site=2, saved_bytes=24, freed_by=0),
            r.Node(node=1, type="AccumulateGrad", thread=0, first_seen=3, variable=1),
        ),
        tensor_nodes=(r.TensorNode(tensor=2, node=0, output_nr=0, proof="seen"),),
        edges=(r.Edge(node=0, slot=0, to_node=None), r.Edge(node=0, slot=1, to_node=1)),
        saved=(r.Saved(node=0, n=0, name="self", tensor=0, size_bytes=12, shape=(3,), version=0),),
        bindings=tuple(r.Binding(binding=n, tensor=n, name="xwy"[n], site=n, moment=n) for n in range(3)),
        snapshots=(
            snapshot(0, 0, value=ones),
            snapshot(1, 1, value=ones, requires_grad=True),
            snapshot(1, 4, requires_grad=True, grad="present", grad_id=0, grad_version=0, grad_stats=ones),
            snapshot(2, 2, is_leaf=False, requires_grad=True, grad="not-read", grad_fn="MulBackward0", value=ones),
        ),
        small_values=(
            r.SmallValue(tensor=1, moment=4, of="grad", dtype="float32", shape=(3,), elements=b"\0\0\x80?" * 3),
        ),
        backward_calls=(
            r.BackwardCall(
                call=0,
                entry="Tensor.backward",
                thread=0,
                moment_before=3,
                moment_after=4,
                site=3,
                roots=(r.Root(tensor=2, name="y", shape=(3,)),),
                nodes_met=2,
                nodes_run=2,
                nodes_freed=1,
                held_bytes=24,
                freed_bytes=24,
                outcome="finished",
            ),
        ),
        node_passes=(
            r.NodePass(call=0, node=0, position=0, freed=True, grad_output=ones),
            r.NodePass(call=0, node=1, position=1),
        ),
        leaf_grads=(r.LeafGrad(n=0, tensor=1, moment=4, kind="populate", call=0, grad_after=0, version_after=0),),
        inplace_events=(r.InplaceEvent(n=0, tensor=0, moment=2, version_before=0, version_after=1, site=2),),
        retentions=(r.Retention(root=2, moment=5, state="freed", freed_by=0, name="y", holders=("y",)),),
        warned=(r.Warned(n=0, category="UserWarning", message="careful", path="train.py", line=4),),
    )


def finding(line=4, level="warning", name="non-leaf-grad-read", **fields):
    region = Region(start_line=line, start_col=1, end_line=line, end_col=9)
    base = {
        "rule": RuleName(code="BP101", name=name, url="/rules/BP101"),
        "level": level,
        "confidence": "proven",
        "message": "`y` is not a leaf.",
        "location": Location(path="train.py", region=region, text="y = x * w"),
        "evidence": {"tensor": 2, "binding": "y", "nan": float("inf")},
        "fingerprint": f"backprobe/v1:{line:016x}",
    }
    return Finding(**(base | fields))


@pytest.fixture(scope="session")
def a_judgement() -> Judgement:
    found = (
        finding(line=5, level="error", name="freed-graph"),
        finding(line=4),
        finding(line=2, level="note", name="other"),
    )
    lacking = (NotRun(code="BP900", name="not-run", why="no statistics"),)
    return Judgement(findings=found, rules_judged=4, not_run=lacking, ruleset="rs_test")


@pytest.fixture(scope="session")
def some_whys() -> dict[int, WhyNone]:
    return {
        0: WhyNone(verdict="requires-grad-false", text="x was never asked for a gradient."),
        2: WhyNone(verdict="not-leaf", text="y is not a leaf.", site=2, line=4, call=0),
    }
