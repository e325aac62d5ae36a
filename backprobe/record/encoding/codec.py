"""Records as bytes: a stream of frames. The only place that decodes what another process sent.

A frame is a length (u32, little-endian, at most `MAX_FRAME`) and that many bytes of msgspec MessagePack: a tagged array
`[kind, body]`. The kinds, in order: one "header"; any number of batches, each the rows of one table; one "end". A
stored record file (`.bprec`) is `MAGIC` and the same stream.

1. Nothing is believed: types, ranges, text lengths and counts are checked by typed decoding, references by
   `integrity.check`; the first frame that does not fit ends the stream with `BadRecord`.
2. What came before a bad frame stays valid: `FrameReader.record()` gives it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, Final

import msgspec

from backprobe.record.encoding.versions import upgrade_header
from backprobe.record.encoding.weight import most_weight, weight
from backprobe.record.integrity import BadRecord, check
from backprobe.record.record import TABLES, End, Header, Record, RecordBuilder
from backprobe.record.rows.fields import Row

MAGIC: Final = b"BPREC\x01\n"
MAX_FRAME: Final = 1 << 20
"""Bytes in one frame, its length apart."""

MOST_FRAME_BYTES: Final = MAX_FRAME + 4
"""Of one frame and its length."""

BATCH_ROWS: Final = 2000
"""Rows in one batch frame: 2.8 million rows/s are decoded at this size, a third of that in one piece."""

MOST_BATCH_ROWS: Final = 4 * BATCH_ROWS
"""That one may have: a process waits while it decodes; 350,000 took a tenth of a second and 100 times their bytes."""

LENGTH: Final = struct.Struct("<I")  # before each frame
_ENCODER: Final = msgspec.msgpack.Encoder()


class _HeaderFrame(msgspec.Struct, frozen=True, array_like=True, tag="header", forbid_unknown_fields=True):
    body: Header


class _EndFrame(msgspec.Struct, frozen=True, array_like=True, tag="end", forbid_unknown_fields=True):
    body: End


def _batch_type(table: str, row: type[Row]) -> type[msgspec.Struct]:
    return msgspec.defstruct(
        f"Batch_{table}",
        [("rows", Annotated[list[row], msgspec.Meta(max_length=MOST_BATCH_ROWS)])],
        tag=table,
        array_like=True,
        frozen=True,
        forbid_unknown_fields=True,
    )


_BATCH: Final[dict[str, type[msgspec.Struct]]] = {table: _batch_type(table, row) for table, row in TABLES.items()}


def _frame_union() -> Any:
    union: Any = _HeaderFrame | _EndFrame
    for batch in _BATCH.values():
        union = union | batch
    return union


_DECODER: Final[msgspec.msgpack.Decoder[Any]] = msgspec.msgpack.Decoder(_frame_union())
_TABLE_OF: Final[dict[type[msgspec.Struct], str]] = {batch: table for table, batch in _BATCH.items()}


def header_frame(header: Header) -> bytes:
    """Encode the first frame of a stream."""
    return _frame_body(_ENCODER.encode(_HeaderFrame(header)))


def end_frame(end: End) -> bytes:
    """Encode the last frame of a stream."""
    return _frame_body(_ENCODER.encode(_EndFrame(end)))


def batch_frames(table: str, rows: Sequence[Row]) -> Iterator[bytes]:
    """Encode the rows of one table, in as many frames as they need.

    Raises:
        ValueError: one row alone is larger than `MAX_FRAME`.
    """
    batch = _BATCH[table]
    for start in range(0, len(rows), BATCH_ROWS):
        yield from _split(batch, rows[start : start + BATCH_ROWS])


def batches(frames: bytes) -> Iterator[tuple[str, list[Row]]]:
    """Decode whole batch frames that this process wrote itself: yield the name of each table and its rows."""
    at = 0
    while at < len(frames):
        (size,) = LENGTH.unpack_from(frames, at)
        at += LENGTH.size + size
        batch = _DECODER.decode(frames[at - size : at])
        yield _TABLE_OF[type(batch)], batch.rows


def _split(batch: type[msgspec.Struct], rows: Sequence[Row]) -> Iterator[bytes]:
    body = _ENCODER.encode(batch(list(rows)))
    if len(body) <= MAX_FRAME:
        yield _frame_body(body)
    elif len(rows) == 1:
        raise ValueError(f"a row of {len(body)} bytes does not fit a frame of {MAX_FRAME}: cut its text first")
    else:
        half = len(rows) // 2
        yield from _split(batch, rows[:half])
        yield from _split(batch, rows[half:])


def _frame_body(body: bytes) -> bytes:
    return LENGTH.pack(len(body)) + body


def _decode_body(body: bytes) -> Any:
    try:
        return _DECODER.decode(body)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError, UnicodeDecodeError) as error:
        raise BadRecord("bad-frame", str(error)[:300]) from error


def frame_rows(data: bytes) -> tuple[str, Sequence[Any]]:
    """Decode one whole frame, its length before it: return "header", "end" or the name of its table, and its rows.

    A header's row is itself, of today's version; an end has none. Types and ranges are checked, references are not: the
    rows that they lead to may come in another frame.

    Raises:
        BadRecord: it is no frame, or more than one.
    """
    if len(data) < LENGTH.size:
        raise BadRecord("bad-frame", f"{len(data)} bytes: a frame begins with its length in {LENGTH.size}")
    (size,) = LENGTH.unpack_from(data)
    if size > MAX_FRAME:
        raise BadRecord("frame-too-large", f"a frame of {size} bytes; {MAX_FRAME} is the most")
    if size != len(data) - LENGTH.size:
        raise BadRecord("bad-frame", f"its length says {size} bytes, and {len(data) - LENGTH.size} follow")
    frame = _decode_body(data[LENGTH.size :])
    if isinstance(frame, _HeaderFrame):
        return "header", (upgrade_header(frame.body),)
    return ("end", ()) if isinstance(frame, _EndFrame) else (_TABLE_OF[type(frame)], frame.rows)


def frame_kind(data: bytes) -> tuple[str, int]:
    """Return what one whole frame is, as `frame_rows` does, and how many rows of a table it has.

    Raises:
        BadRecord: it is no frame, or more than one.
    """
    kind, rows = frame_rows(data)
    return kind, 0 if kind == "header" else len(rows)


class FrameReader:
    """Decodes a stream as it comes, in pieces of any size; it keeps at most one frame undecoded.

    Args:
        max_bytes: Bytes of the whole stream; max_rows: rows in all its frames.
        max_weight: Bytes of memory that the rows may take, by `backprobe.record.encoding.weight`. None: no bound.
        on_rows: Gets a table's name and its rows as soon as they are decoded, and first "header" and the header. Types
            and ranges are checked by then, references are not.
    """

    def __init__(
        self,
        max_bytes: int = 32 << 20,
        max_rows: int = 2_000_000,
        on_rows: Callable[[str, Sequence[Any]], None] | None = None,
        *,
        max_weight: int | None = None,
    ) -> None:
        self.max_bytes, self.max_rows, self.max_weight = max_bytes, max_rows, max_weight
        self._on_rows = on_rows
        self.bytes_seen = 0
        self._buffer = bytearray()
        self._builder: RecordBuilder | None = None
        self._weight, self._weighed = 0, False

    @property
    def has_ended(self) -> bool:
        """The end frame has come."""
        return self._builder is not None and self._builder.end is not None

    @property
    def rows(self) -> int:
        """Rows decoded so far."""
        return 0 if self._builder is None else self._builder.rows

    def feed(self, piece: bytes) -> None:
        """Take the next bytes of the stream.

        Raises:
            BadRecord: what came is not a record. Feed no more; `record()` gives what was valid before.
        """
        self.bytes_seen += len(piece)
        if self.bytes_seen > self.max_bytes:
            raise BadRecord("record-too-large", f"more than {self.max_bytes} bytes of record")
        self._buffer += piece
        at = 0
        while len(self._buffer) - at >= LENGTH.size:
            (size,) = LENGTH.unpack_from(self._buffer, at)
            if size > MAX_FRAME:
                raise BadRecord("frame-too-large", f"a frame of {size} bytes; {MAX_FRAME} is the most")
            if len(self._buffer) - at - LENGTH.size < size:
                break
            start = at + LENGTH.size
            self._take(bytes(self._buffer[start : start + size]))
            at = start + size
        del self._buffer[:at]
        if self.has_ended and self._buffer:
            raise BadRecord("bytes-after-end", "bytes follow the end frame")

    def _take(self, body: bytes) -> None:
        frame = _decode_body(body)
        if self.has_ended:
            raise BadRecord("bytes-after-end", "a frame follows the end frame")
        if isinstance(frame, _HeaderFrame):
            self._accept_header(frame.body)
            return
        if self._builder is None:
            raise BadRecord("no-header", "the first frame is not a header")
        if isinstance(frame, _EndFrame):
            self._builder.end = frame.body
            return
        table = _TABLE_OF[type(frame)]
        self._builder.shared.unify(frame.rows)
        self._weigh(self._builder, frame.rows, len(body))
        self._builder.add(table, frame.rows)
        if self._builder.rows > self.max_rows:
            raise BadRecord("too-many-rows", f"more than {self.max_rows} rows")
        if self._on_rows is not None:
            self._on_rows(table, frame.rows)

    def _weigh(self, builder: RecordBuilder, rows: Sequence[Row], wire_bytes: int) -> None:
        """Hold the memory of all rows below its bound; values are looked at only once the bytes alone do not tell."""
        if self.max_weight is None:
            return
        most = self.max_weight - builder.shared.weight
        self._weight += weight(rows, builder.shared) if self._weighed else most_weight(rows, wire_bytes)
        if self._weight > most and not self._weighed:
            self._weight, self._weighed = builder.weight + weight(rows, builder.shared), True
        if self._weight > most:
            raise BadRecord("record-too-heavy", f"rows of more than {self.max_weight} bytes of memory")

    def _accept_header(self, header: Header) -> None:
        if self._builder is not None:
            raise BadRecord("second-header", "a second header frame")
        self._builder = RecordBuilder(upgrade_header(header))
        if self._on_rows is not None:
            self._on_rows("header", (self._builder.header,))

    def record(self) -> Record | None:
        """Return the record so far; None before its header.

        Raises:
            BadRecord: rows refer to rows that are not there.
        """
        if self._builder is None:
            return None
        record = self._builder.record()
        check(record)
        return record


def encode(record: Record) -> Iterator[bytes]:
    """Encode a whole record, frame by frame, without `MAGIC`."""
    yield header_frame(record.header)
    for table in TABLES:
        yield from batch_frames(table, getattr(record, table))
    if record.end is not None:
        yield end_frame(record.end)


def dumps(record: Record) -> bytes:
    """Encode a record as the bytes of a `.bprec` file."""
    return MAGIC + b"".join(encode(record))


def loads(data: bytes, max_bytes: int = 256 << 20, max_rows: int = 10_000_000) -> Record:
    """Read the bytes of a `.bprec` file.

    Raises:
        BadRecord: it is not one; the message says at what it failed.
    """
    if not data.startswith(MAGIC):
        raise BadRecord("no-magic", "this is not a Backprobe record: its first bytes are not BPREC")
    reader = FrameReader(max_bytes, max_rows)
    reader.feed(data[len(MAGIC) :])
    record = reader.record()
    if record is None:
        raise BadRecord("no-header", "the record has no header")
    return record
