"""Gaps that are planted in records, to see that nothing is called proven of what a record does not show."""

from collections import Counter
from collections.abc import Callable
from typing import Final

import msgspec

from backprobe.record import Binding, FrameReader, Record, batch_frames, encode
from backprobe.record.encoding.codec import LENGTH, MAGIC
from backprobe.record.rows.events import Truncation
from backprobe.recorder.sources import SourceCut, SourcePolicy

STEPS_APART: Final = 3
"""Of so many steps one is captured in full, where steps are the gap."""


def cut(stream: bytes, share: float) -> Record:
    """The record of a program that was killed: its header and a share of its bytes came."""
    reader = FrameReader(max_bytes=1 << 30, max_rows=10_000_000)
    (header,) = LENGTH.unpack_from(stream, len(MAGIC))
    header += len(MAGIC) + LENGTH.size
    reader.feed(stream[len(MAGIC) : max(header, int(share * len(stream)))])
    record = reader.record()
    assert record is not None
    return record


def full(stream: bytes, share: float) -> Record:
    """The record of a program that ended, in which a cap left out what came after a share of its bytes."""
    whole, found = cut(stream, 1.0), cut(stream, share)
    row = Truncation(n=len(found.truncations), what="rows", why="the record holds its most rows")
    return msgspec.structs.replace(found, end=whole.end, truncations=(*found.truncations, row))


def without_source(stream: bytes) -> Record | None:
    """The record without the text of the program."""
    record = cut(stream, 1.0)
    if record is None:
        return None
    return msgspec.structs.replace(
        record, sources=tuple(msgspec.structs.replace(row, text="") for row in record.sources)
    )


def as_sent(record: Record, policy: SourcePolicy) -> Record:
    """The record with as much of the program's text as a recorder sends by a policy."""
    frames = [frame for table in ("sources", "sites") for frame in batch_frames(table, getattr(record, table))]
    reader = FrameReader(max_bytes=1 << 30)
    reader.feed(next(encode(record)))
    for frame in SourceCut(policy).cut_sources(frames):
        reader.feed(frame)
    sent = reader.record()
    assert sent is not None
    return msgspec.structs.replace(record, sources=sent.sources)


def call_of_other_thread(stream: bytes, at: int) -> Record | None:
    """The record without what a backward call did, as one made by a thread that Python does not see."""
    record = cut(stream, 1.0)
    if not record.backward_calls:
        return None
    unseen = record.backward_calls[at].call
    calls = tuple(
        msgspec.structs.replace(row, entry="unseen", roots=()) if row.call == unseen else row
        for row in record.backward_calls
    )
    return msgspec.structs.replace(
        record,
        backward_calls=calls,
        node_passes=tuple(row for row in record.node_passes if row.call != unseen),
        grad_inputs=tuple(row for row in record.grad_inputs if row.call != unseen),
    )


def not_walked(stream: bytes) -> Record | None:
    """The record without the graph, as one of which each backward call had more nodes than are looked at."""
    record = cut(stream, 1.0)
    if not record.backward_calls:
        return None
    row = Truncation(n=len(record.truncations), what="live nodes", why="the graph is too deep")
    return msgspec.structs.replace(
        record,
        backward_calls=tuple(msgspec.structs.replace(call, truncated=True) for call in record.backward_calls),
        truncations=(*record.truncations, row),
        **dict.fromkeys(("nodes", "edges", "tensor_nodes", "saved", "node_passes", "grad_inputs"), ()),
    )


def thinned(stream: bytes) -> Record | None:
    """The record with the first two bindings of each statement, as one that runs very often has them."""
    record = cut(stream, 1.0)
    times: Counter[tuple[int, str]] = Counter()
    kept: list[Binding] = []
    lost: int | None = None
    for row in record.bindings:
        times[row.site, row.name] += 1
        if times[row.site, row.name] <= 2:
            kept.append(row)
        elif lost is None:
            lost = row.moment
    if lost is None:
        return None
    why = "a statement that runs often is thinned out"
    row = Truncation(n=len(record.truncations), what="bindings", why=why, moment=lost)
    return msgspec.structs.replace(record, bindings=tuple(kept), truncations=(*record.truncations, row))


GAPS: Final[dict[str, Callable[[bytes], Record | None]]] = {
    "cut early": lambda stream: cut(stream, 0.25),
    "no source": lambda stream: as_sent(cut(stream, 1.0), "none"),
    "cut in the middle": lambda stream: cut(stream, 0.5),
    "calls not walked": not_walked,
    "lines only": lambda stream: as_sent(cut(stream, 1.0), "lines"),
    "cut late": lambda stream: cut(stream, 0.8),
    "first call in another thread": lambda stream: call_of_other_thread(stream, 0),
    "last call in another thread": lambda stream: call_of_other_thread(stream, -1),
    "rows full": lambda stream: full(stream, 0.6),
    "thinned": thinned,
}
"""What a gap is called, and what makes the record with it from a record's stream; None: it does not fit in there."""
