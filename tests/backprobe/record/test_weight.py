"""What rows take of memory: the estimate is near the truth, never below its cheap bound, and holds a reader back."""

import gc
import tracemalloc
from dataclasses import dataclass

import msgspec
import pytest
from msgspec.inspect import DictType, StructType, UnionType, VarTupleType, type_info

from backprobe import record as r
from backprobe.record.encoding.codec import BATCH_ROWS
from backprobe.record.encoding.shared import Shared
from backprobe.record.encoding.weight import MOST_PER_WIRE_BYTE, most_weight, weight
from backprobe.record.rows.tensors import Statistics
from tests.backprobe.record.rows import HEADER, full_record

ROWS = 4000


@dataclass(frozen=True)
class Many:
    """Rows of one table, with numbers of their own."""

    table: str
    rows: tuple[r.Row, ...]

    def stream(self) -> bytes:
        first = [r.Thread(thread=0, name="main", main=True)], [r.Moment(moment=0, kind="end", time_ns=1)]
        named = (*r.batch_frames("threads", first[0]), *r.batch_frames("moments", first[1]))
        return r.header_frame(HEADER) + b"".join(named) + b"".join(r.batch_frames(self.table, self.rows))


def backward(number: int, **facts: object) -> r.Row:
    call = r.BackwardCall(call=1000 + number, entry="autograd.grad", thread=0, moment_before=0)
    return msgspec.structs.replace(call, **facts)


SHAPES = {
    "small": Many("threads", tuple(r.Thread(thread=1000 + n, name="x", main=False) for n in range(ROWS))),
    "texts": Many("threads", tuple(r.Thread(thread=1000 + n, name=f"number {n}", main=False) for n in range(ROWS))),
    "wide text": Many(
        "threads", tuple(r.Thread(thread=1000 + n, name=f"{n}\U0001f600", main=True) for n in range(ROWS))
    ),
    "empty statistics": Many(
        "backward_calls", tuple(backward(n, returned_grads=(Statistics(),) * 1000) for n in range(ROWS // 100))
    ),
    "one text": Many(
        "threads", tuple(r.Thread(thread=1000 + n, name="the same in each", main=False) for n in range(ROWS))
    ),
}


def weighed(rows: tuple[r.Row, ...]) -> int:
    """As a reader weighs them that gets them in whole batches."""
    shared, total = Shared(), 0
    for start in range(0, len(rows), BATCH_ROWS):
        shared.unify(rows[start : start + BATCH_ROWS])
        total += weight(rows[start : start + BATCH_ROWS], shared)
    return shared.weight + total


@pytest.mark.parametrize("name", SHAPES)
def test_the_estimate_is_near_what_the_rows_of_a_record_take(name: str) -> None:
    stream, reader = SHAPES[name].stream(), r.FrameReader()
    gc.collect()
    tracemalloc.start()
    try:
        reader.feed(stream)
        record = reader.record()
        del reader
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    estimate = weighed(getattr(record, SHAPES[name].table))
    assert 0.75 < estimate / taken < 1.35


@pytest.mark.parametrize("table", r.TABLES)
def test_the_bound_that_looks_at_no_value_is_never_below(table: str) -> None:
    rows = getattr(full_record(), table)
    frames = b"".join(r.batch_frames(table, rows))
    assert weight(rows) <= most_weight(rows, len(frames))


@pytest.mark.parametrize("table", r.TABLES)
def test_no_struct_within_a_row_takes_more_of_memory_for_a_byte_than_the_bound_says(table: str) -> None:
    todo, beside = [(type_info(r.TABLES[table]), False)], 24  # rounding, and its place in a tuple
    while todo:
        kind, inner = todo.pop()
        if isinstance(kind, StructType):
            least_wire = 1 + sum(field.required for field in kind.fields)
            assert not inner or kind.cls.__basicsize__ + beside <= MOST_PER_WIRE_BYTE * least_wire
            todo += [(field.type, True) for field in kind.fields]
        elif isinstance(kind, UnionType):
            todo += [(type_, inner) for type_ in kind.types]
        elif isinstance(kind, VarTupleType):
            assert not isinstance(kind.item_type, VarTupleType | DictType)
            todo.append((kind.item_type, inner))


@pytest.mark.parametrize("name", SHAPES)
def test_rows_that_take_more_than_they_may_are_refused_and_what_came_before_is_kept(name: str) -> None:
    many = SHAPES[name]
    whole = weighed(many.rows)
    reader = r.FrameReader(max_weight=whole // 2)
    with pytest.raises(r.BadRecord) as refused:
        reader.feed(many.stream())
    assert refused.value.code == "record-too-heavy"
    kept = reader.record()
    assert kept is not None
    assert len(kept.moments) == 1
    reader = r.FrameReader(max_weight=whole * 2)
    reader.feed(many.stream())
    assert reader.rows == len(many.rows) + 2


def test_rows_share_what_is_equal_and_stay_what_they_were() -> None:
    record = r.loads(r.dumps(full_record()))
    assert r.dumps(record) == r.dumps(full_record())
    reader = r.FrameReader()
    reader.feed(SHAPES["one text"].stream())
    found = reader.record()
    assert found is not None
    assert len({id(row.name) for row in found.threads[1:]}) == 1
