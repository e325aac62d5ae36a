"""Columns of snapshots as bytes and back."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.records.chunk_encoding import NAMES, chunk_row, chunk_rows, columns_of, floats, merge, numbers, pack, unpack
from store.records.chunk_format import CHUNK, COLUMNS, MISSING

LENGTHS = st.sampled_from([1, 2, 15, 16, 17, CHUNK - 1, CHUNK, CHUNK + 1]) | st.integers(1, 40)
BYTES = {"<i2": 2, "<i4": 4, "<i8": 8, "<f4": 4}


@st.composite
def byte_columns(draw, dtype, n):
    """Any bits at all: constant, counting or random."""
    seed = draw(st.integers(0, 2**32 - 1))
    shape = draw(st.sampled_from(["random", "constant", "absent", "counting"]))
    random = np.random.default_rng(seed)
    if shape == "absent":
        return unpack(None, n, dtype, next(c.absent for c in COLUMNS.values() if c.dtype == dtype))
    if shape == "counting" and dtype != "<f4":
        return (np.arange(n) * int(random.integers(-3, 4)) + int(random.integers(-9, 9))).astype(dtype)
    count = 1 if shape == "constant" else n
    column = np.frombuffer(random.bytes(count * BYTES[dtype]), dtype)
    return np.repeat(column, n) if count == 1 else column


@given(data=st.data(), dtype=st.sampled_from(sorted(BYTES)), n=LENGTHS, absent=st.sampled_from([0, -1]))
def test_what_is_packed_is_unpacked_bit_by_bit(data, dtype, n, absent):
    column = data.draw(byte_columns(dtype, n))
    absent = MISSING if dtype == "<f4" else absent
    stored = pack(column, absent)
    assert unpack(stored, n, dtype, absent).tobytes() == column.tobytes()
    assert stored is None or len(stored) in (BYTES[dtype], BYTES[dtype] * n)


@st.composite
def snapshot_columns(draw):
    """Snapshots of a few tensors, with gaps between their moments."""
    tensors, moments = [], []
    for tensor in range(draw(st.integers(1, 3))):
        n = draw(LENGTHS)
        gaps = draw(st.sampled_from(["dense", "even", "odd"]))
        step = {"dense": np.ones(n, int), "even": np.full(n, 7)}.get(gaps)
        if step is None:
            step = np.random.default_rng(n).integers(1, 99, n)
        tensors += [tensor * 3] * n
        moments += np.cumsum(step).tolist()
    columns = {"tensor": np.array(tensors, "<i4"), "moment": np.array(moments, "<i4")}
    for name, column in COLUMNS.items():
        columns[name] = draw(byte_columns(column.dtype, len(tensors)))
        if name.endswith(("_nan", "_inf")):
            columns[name] = np.abs(columns[name] // 2)
    return columns


def name_columns(rows):
    return [dict(zip(NAMES, row, strict=True)) for row in rows]


def equal(first, other):
    return set(first) == set(other) and all(first[name].tobytes() == other[name].tobytes() for name in first)


@settings(max_examples=60, deadline=None)
@given(columns=snapshot_columns())
def test_chunk_rows_hold_every_column_bit_by_bit(columns):
    rows = name_columns(chunk_rows(columns))
    assert equal(columns, columns_of(rows))
    assert all(1 <= row["n"] <= CHUNK for row in rows)


@settings(max_examples=40, deadline=None)
@given(columns=snapshot_columns(), data=st.data())
def test_any_split_merges_to_the_whole(columns, data):
    n = len(columns["tensor"])
    cuts = sorted(set(data.draw(st.lists(st.integers(1, n), max_size=6))) | {0, n})
    pieces = [{name: column[a:b] for name, column in columns.items()} for a, b in pairwise(cuts)]
    rows = [row for piece in pieces for row in name_columns(chunk_rows(piece))]
    assert equal(columns, columns_of(rows))
    assert merge(rows) == chunk_rows(columns)


def test_a_chunk_holds_480_snapshots_and_the_481st_begins_another():
    n = CHUNK + 1
    columns = {"tensor": np.zeros(n, "<i4"), "moment": np.arange(n, dtype="<i4")}
    assert [row["n"] for row in name_columns(chunk_rows(columns))] == [CHUNK, 1]
    with pytest.raises(ValueError, match="2 chunk rows"):
        chunk_row(columns)
    assert chunk_rows({name: column[:0] for name, column in columns.items()}) == []


def test_none_and_nan_are_different_statistics():
    column = floats([None, float("nan"), 1.5, float("-inf"), 1e300])
    assert str(numbers(column)) == "[None, nan, 1.5, -inf, inf]"


def test_the_summary_says_what_the_columns_hold():
    columns = {
        "tensor": np.zeros(20, "<i4"),
        "moment": np.arange(0, 40, 2, dtype="<i4"),
        "flags": np.array([3] * 19 + [1], "<i2"),
        "version": np.arange(5, 25, dtype="<i4"),
        "grad_norm": floats([None, float("nan"), *map(float, range(18))]),
        "grad_nan": np.array([0, 4] + [0] * 18, "<i8"),
        "value_inf": np.full(20, 2**62, "<i8"),
    }
    row = name_columns(chunk_rows(columns))[0]
    assert (row["first_moment"], row["last_moment"], row["n"], row["moment_step"]) == (0, 38, 20, 2)
    assert (row["flags_and"], row["flags_or"]) == (1, 3)
    assert (row["grad_norm_min"], row["grad_norm_max"]) == (0.0, 17.0)  # NaN would head every top list
    assert row["nan_total"] == 4
    assert row["inf_total"] == 20 * 2**53  # each count is cut, so that the sum cannot overflow
    assert (row["version_step"], row["version"]) == (1, (5).to_bytes(4, "little"))
    assert numbers(np.frombuffer(row["overview"], "<f4")) == [13.0, 17.0]
    assert row["moments"] is None
    assert row["value_norm"] is None
