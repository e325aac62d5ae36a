"""The view `snapshot` says what the record says, to anybody with SQL."""

import math
import struct
import subprocess

import numpy as np
import pytest
import sqlalchemy as sa

from backprobe import record as r
from store import tables
from store.records.bulk import Batch, write
from store.records.chunk_encoding import chunk_rows, floats
from store.records.chunk_format import CHUNK, GRAD_MEASURED
from store.runs import completion
from store.tables.base.types import float32

STATISTICS = ("norm", "sum", "min", "max", "nan", "inf", "zeros", "counted")


def number(value):
    """As Python has it: SQLite tells NaN as text, PostgreSQL a float32 by its shortest decimal."""
    return math.nan if value == "NaN" else float32(value) if isinstance(value, float) else value


def equal(first, other):
    """Equal, or both NaN."""
    both = isinstance(first, float) and isinstance(other, float)
    return first == other or (both and math.isnan(first) and math.isnan(other))


def select_view(database, where="true", columns="*"):
    with database.read() as reading:
        query = sa.text(f"select {columns} from snapshot where {where} order by tensor, moment")
        return reading.execute(query).mappings().all()


def test_a_row_of_the_view_is_a_snapshot_of_the_record(database, ended_run, a_record):
    odd = r.Statistics(norm=math.nan, sum=math.inf, min=-1.5, max=None, nan=2**40, inf=3, counted=7, kind="sampled")
    first, *rest = a_record.snapshots
    record = type(a_record)(
        **{name: getattr(a_record, name) for name in a_record.__struct_fields__}
        | {
            "snapshots": (
                first.__class__(**{n: getattr(first, n) for n in first.__struct_fields__} | {"value": odd}),
                *rest,
            )
        }
    )
    run = ended_run(record)
    rows = select_view(database)
    assert [(row["run"], row["tensor"], row["moment"]) for row in rows] == [
        (run.id, snapshot.tensor, snapshot.moment) for snapshot in record.snapshots
    ]
    for row, snapshot in zip(rows, record.snapshots, strict=True):
        for name in (
            "is_leaf",
            "requires_grad",
            "retains_grad",
            "grad",
            "grad_fn",
            "version",
            "grad_id",
            "grad_version",
        ):
            assert row[name] == getattr(snapshot, name), name
        for of, found in (("value", snapshot.value), ("grad", snapshot.grad_stats)):
            for name in STATISTICS:
                told, true = number(row[f"{of}_{name}"]), None if found is None else getattr(found, name)
                assert equal(told, true), (of, name)


@pytest.fixture
def long_run(database, submit, claim, look):
    """A run with chunks of every kind: full, short, constant, absent, with gaps between moments."""
    submit()
    held = claim()
    n, random = CHUNK + 31, np.random.default_rng(1)
    moments = np.cumsum(random.integers(1, 4, n)).astype("<i4")
    norm = np.frombuffer(random.bytes(4 * n), "<f4").copy()
    norm[5] = floats([None])[0]
    norm.view("<u4")[5:6] = 0x7FC00001
    columns = {
        "tensor": np.repeat(np.array([0, 1], "<i4"), n),
        "moment": np.concatenate([moments, np.arange(n, dtype="<i4") * 5]),
        "flags": np.full(2 * n, GRAD_MEASURED | 1, "<i2"),
        "version": np.concatenate([np.arange(n, dtype="<i4") * 2 - 1, random.integers(-1, 9, n).astype("<i4")]),
        "grad_norm": np.concatenate([norm, np.full(n, 0.5, "<f4")]),
        "grad_nan": np.concatenate([np.zeros(n, "<i8"), random.integers(0, 2**62, n)]),
        "grad_id": np.full(2 * n, 3, "<i4"),
    }
    with database.begin() as transaction:
        write(transaction, held.key, [Batch(table=tables.snapshot_chunk, rows=chunk_rows(columns))])
    return held, columns


def test_every_element_of_every_chunk_is_told_bit_by_bit(database, long_run):
    held, columns = long_run
    assert completion.finish(database, held, completion.Ending(status="succeeded", exit_code=0), None, None)
    rows = select_view(database)
    assert [row["moment"] for row in rows] == columns["moment"].tolist()
    assert [-1 if row["version"] is None else row["version"] for row in rows] == columns["version"].tolist()
    assert [row["grad_nan"] for row in rows] == columns["grad_nan"].tolist()
    assert {row["grad_id"] for row in rows} == {3}
    assert {row["value_norm"] for row in rows} == {None}
    for row, bits in zip(rows, columns["grad_norm"].view("<u4").tolist(), strict=True):
        true, told = struct.unpack("<f", struct.pack("<I", bits))[0], number(row["grad_norm"])
        assert told is None if bits == 0x7FC00001 else equal(told, true), hex(bits)


def test_what_no_run_shows_is_not_in_the_view(database, long_run):
    assert select_view(database) == []


def test_the_worked_example_of_the_documents_works(database, ended_run, a_record):
    from pathlib import Path

    run = ended_run(a_record)
    page = (Path(__file__).parents[2] / "docs" / "sql.md").read_text()
    examples = [block.split("```")[0] for block in page.split("```sql\n")[1:]]
    assert len(examples) >= 4
    for example in examples:
        with database.read() as reading:
            query = example.replace("run_01JD8PZ4T8W2K5C7Q9R3M6X1BA", run.id).strip().rstrip(";")
            assert reading.execute(sa.text(query)).mappings().all(), example


def test_the_stock_sqlite_shell_reads_the_view(database, ended_run, a_record, require):
    if not database.sqlite:
        return
    require("sqlite3")
    ended_run(a_record)
    query = "select tensor, moment, grad, value_norm from snapshot order by 1, 2"
    done = subprocess.run(["sqlite3", database.url.database, query], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == "0|0|none|1.75"
