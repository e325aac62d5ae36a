"""A stream of frames: read back as written, cut anywhere, damaged anywhere."""

from __future__ import annotations

import itertools
import struct
import tracemalloc

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backprobe import record as r
from backprobe.record.encoding.codec import MAGIC, MAX_FRAME, MOST_BATCH_ROWS
from tests.backprobe.record.rows import END, HEADER, full_record

STREAM = b"".join(r.encode(full_record()))


def read(data: bytes, **caps: int) -> r.Record | None:
    reader = r.FrameReader(**caps)
    reader.feed(data)
    return reader.record()


def same(record: r.Record | None, other: r.Record) -> bool:
    """Equal, NaN included: compared as bytes."""
    return record is not None and r.dumps(record) == r.dumps(other)


def test_a_record_with_every_table_comes_back_as_it_was() -> None:
    record = full_record()
    assert all(getattr(record, table) for table in r.TABLES), "the record has a row in every table"
    assert same(r.loads(r.dumps(record)), record)
    assert r.loads(r.dumps(record)).snapshots[0].value != record.snapshots[0].value, "NaN is kept, and is not equal"


@given(st.lists(st.integers(0, len(STREAM)), max_size=6))
@settings(max_examples=200, deadline=None)
def test_a_stream_may_come_in_pieces_of_any_size(cuts: list[int]) -> None:
    reader = r.FrameReader()
    edges = [0, *sorted(cuts), len(STREAM)]
    for start, end in itertools.pairwise(edges):
        reader.feed(STREAM[start:end])
    assert same(reader.record(), full_record())
    assert reader.has_ended


def test_a_stream_cut_at_any_byte_leaves_a_valid_record_of_what_came() -> None:
    rows = -1
    for end in range(len(STREAM) + 1):
        reader = r.FrameReader()
        reader.feed(STREAM[:end])
        record = reader.record()
        assert reader.rows >= rows
        rows = reader.rows
        if record is not None:
            assert (record.end is None) == (end < len(STREAM))
            assert record.truncated
    assert rows == sum(len(getattr(full_record(), table)) for table in r.TABLES)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (struct.pack("<I", MAX_FRAME + 1), "frame-too-large"),
        (STREAM[4:], "frame-too-large"),
        (r.header_frame(HEADER) + r.header_frame(HEADER), "second-header"),
        (r.end_frame(END), "no-header"),
        (STREAM + b"x", "bytes-after-end"),
        (STREAM + r.end_frame(END), "bytes-after-end"),
        (struct.pack("<I", 3) + b"\xc1\xc1\xc1", "bad-frame"),
        (struct.pack("<I", 5) + b"\xdc\xff\xff\x91\x91", "bad-frame"),
        (r.header_frame(HEADER) + struct.pack("<I", 4000) + b"\x91" * 4000, "bad-frame"),
        (r.header_frame(msgspec.structs.replace(HEADER, schema_version=999)), "unknown-version"),
    ],
)
def test_what_is_no_record_is_refused_by_name(data: bytes, code: str) -> None:
    reader = r.FrameReader()
    with pytest.raises(r.BadRecord) as caught:
        reader.feed(data)
    assert caught.value.code == code


def test_what_came_before_a_bad_frame_stays_readable() -> None:
    reader = r.FrameReader()
    reader.feed(r.header_frame(HEADER) + b"".join(r.batch_frames("threads", full_record().threads)))
    with pytest.raises(r.BadRecord):
        reader.feed(struct.pack("<I", 1) + b"\xc1")
    record = reader.record()
    assert record is not None
    assert len(record.threads) == 1


def test_bytes_and_rows_are_capped() -> None:
    with pytest.raises(r.BadRecord, match="bytes of record"):
        read(STREAM, max_bytes=len(STREAM) - 1)
    with pytest.raises(r.BadRecord, match="rows"):
        read(STREAM, max_rows=5)


def test_a_file_that_is_no_record_says_so() -> None:
    with pytest.raises(r.BadRecord, match="BPREC"):
        r.loads(b"PK\x03\x04")
    with pytest.raises(r.BadRecord, match="no header"):
        r.loads(MAGIC)


@pytest.mark.parametrize(
    ("table", "field"), [(table, field) for table, fields in r.REFERENCES.items() for field in fields]
)
def test_a_reference_to_a_row_that_is_not_there_is_refused(table: str, field: str) -> None:
    record = full_record()
    rows = getattr(record, table)
    broken = msgspec.structs.replace(rows[0], **{field: 999})
    with pytest.raises(r.BadRecord, match=f"{table}.{field} = 999") as caught:
        r.check(msgspec.structs.replace(record, **{table: (broken, *rows[1:])}))
    assert caught.value.code == "dangling-reference"


@pytest.mark.parametrize(
    "change",
    [{"elements": b"\0" * 5}, {"shape": (65,)}, {"dtype": "float8"}, {"shape": (2**40, 2**40)}, {"shape": (-1, -1)}],
)
def test_elements_that_do_not_fit_their_shape_are_refused(change: dict[str, object]) -> None:
    record = full_record()
    broken = msgspec.structs.replace(record.small_values[0], **change)
    with pytest.raises(r.BadRecord):
        r.check(msgspec.structs.replace(record, small_values=(broken,)))


def test_a_shape_with_a_zero_cannot_ask_for_endless_lists() -> None:
    record = full_record()
    broken = msgspec.structs.replace(record.small_values[0], elements=b"", shape=(2**40, 0))
    with pytest.raises(r.BadRecord):
        r.check(msgspec.structs.replace(record, small_values=(broken,)))


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("bindings", {"parents": (999,)}),
        ("backward_calls", {"roots": (r.Root(tensor=999, name=None, shape=None),)}),
        ("optimizers", {"tensors": (r.OptimizerTensor(tensor=999, group=0),)}),
    ],
)
def test_a_listed_reference_to_a_row_that_is_not_there_is_refused(table: str, change: dict[str, object]) -> None:
    record = full_record()
    broken = msgspec.structs.replace(getattr(record, table)[0], **change)
    with pytest.raises(r.BadRecord, match="999"):
        r.check(msgspec.structs.replace(record, **{table: (broken,)}))


def test_a_later_row_completes_an_earlier_one_of_the_same_key() -> None:
    builder = r.RecordBuilder(HEADER)
    node = full_record().nodes[1]
    builder.add("nodes", [node])
    builder.add("nodes", [msgspec.structs.replace(node, died=1), full_record().nodes[0]])
    assert [row.node for row in builder.record().nodes] == [0, 1], "in order of the key"
    assert builder.record().nodes[1].died == 1
    assert builder.rows == 3
    with pytest.raises(KeyError):
        builder.add("gradients", [])


def test_many_rows_leave_in_frames_of_bounded_size() -> None:
    note = full_record().notes[0]
    rows = [msgspec.structs.replace(note, moment=i, why="w" * 4000) for i in range(700)]
    frames = list(r.batch_frames("notes", rows))
    assert len(frames) > 1
    assert all(len(frame) <= MAX_FRAME + 4 for frame in frames)
    with pytest.raises(ValueError, match="cut its text"):
        list(r.batch_frames("sources", [r.Source(source=0, path="p", sha256="", text="x" * (MAX_FRAME + 1))]))


@pytest.mark.parametrize("decoded", [r.frame_kind, lambda frame: read(r.header_frame(HEADER) + frame)])
def test_a_frame_of_more_rows_than_one_call_may_decode_is_refused_before_they_are_made(decoded) -> None:
    most = [msgspec.Raw(msgspec.msgpack.encode([1, 0, None, 0]))] * MOST_BATCH_ROWS

    def frame(rows: list[msgspec.Raw]) -> bytes:
        body = msgspec.msgpack.encode(["edges", rows])
        return struct.pack("<I", len(body)) + body

    assert r.frame_kind(frame(most)) == ("edges", MOST_BATCH_ROWS)
    hostile = frame(most * 20)
    tracemalloc.start()
    with pytest.raises(r.BadRecord, match=rf"length <= {MOST_BATCH_ROWS}"):
        decoded(hostile)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 * len(hostile)
