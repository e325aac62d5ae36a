"""Rows on their way out: buffered by table, flushed as whole frames, capped.

1. Tables leave in the order of `TABLES`, so that what was flushed is a valid record if the process dies.
2. The sink's failure is not the program's: it closes the writer. Only the process that made it sends: a copy that was
   forked beneath Python, by native code, runs to its end in the same code.
3. A record stays below its caps in bytes and rows, its end included, however long the program goes on:

    open    every row is taken
    closed  the part for detail is full: only exceptions, warnings and the sources they stand in are taken, into a
            part of their own; counts of what is missing are written again at the end only
    sealed  that part is full too: only what ends a record follows, for which room is kept
"""

from __future__ import annotations

import _signal  # pyright: ignore[reportMissingImports]  # the public module turns every number into an enum, 0.4 ms per flush
import os
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from backprobe.capture.options import Caps
from backprobe.capture.output.row_buffer import RowBuffer
from backprobe.capture.torch_access import native
from backprobe.capture.torch_access.device_values import DeviceValues
from backprobe.record import TABLES, End, Header, Raised, Truncation, batch_frames, end_frame, header_frame
from backprobe.record.encoding.codec import BATCH_ROWS, MAX_FRAME, batches

Sink = Callable[[bytes], None]
"""Receives whole frames; one call may carry several."""

_SIGNALS: Final = frozenset(_signal.valid_signals())
_ALWAYS: Final = frozenset({"sources", "sites", "threads", "raised", "warned"})
_LAST_BYTES: Final = 12 << 10
"""Room for what ends a record: 25 truncations of 200 bytes, the uncaught exception, the end with an error's text."""

_LAST_ROWS: Final = 32
_LAST_RAISED: Final = 2048
"""Bytes of the uncaught exception, if it has to go into that room: its innermost frames are kept."""

_ENCODE: Final = msgspec.msgpack.Encoder().encode


class Writer:
    """Collects rows and hands whole frames to a sink.

    Attributes:
        buffer: Where rows wait; the compiled core writes its own rows there.
        values: What is missing in rows that were written, and comes from another device.
    """

    def __init__(self, caps: Caps, sink: Sink) -> None:
        self.caps = caps
        most_rows = max(0, caps.rows - max(caps.rows // 8, 2 * _LAST_ROWS))
        self.buffer = native.choose_class(RowBuffer)(
            tuple(TABLES), _ENCODE, self._is_full, most_rows, MAX_FRAME, BATCH_ROWS
        )
        self.values = DeviceValues(caps.elements, self.cut)
        self.sent_bytes = 0
        self.start_ns = time.perf_counter_ns()
        self._sink: Sink | None = sink
        self._pid = os.getpid()
        self._truncations: dict[str, Truncation] = {}
        self._told: dict[str, int] = {}
        self._told_rows = 0
        self._last_raised: Raised | None = None
        self._sealed = False
        self._flushed_at = 0.0
        self._dirty = False

    @property
    def is_closed(self) -> bool:
        """A cap was reached: only what ends a record is still taken."""
        return self.buffer.closed

    @property
    def rows(self) -> int:
        """Rows taken so far."""
        return self.buffer.rows

    def time_ns(self) -> int:
        """Nanoseconds since the start of the record."""
        return time.perf_counter_ns() - self.start_ns

    def begin(self, header: Header) -> None:
        """Send the header."""
        self._send(header_frame(header))

    def add(self, table: str, row: Any) -> None:
        """Take a row; past a cap only the rows that end a record, without what they refer to."""
        if self.is_closed:
            if table not in _ALWAYS:
                return
            if table in ("raised", "warned"):
                row = self._alone(row)
            if self._sealed:
                return
        self.buffer.add(table, row)

    def _alone(self, row: Any) -> Any:
        """Return an exception or a warning without references to what may be missing in the record."""
        if not isinstance(row, Raised):
            return msgspec.structs.replace(row, moment=None)
        row = self._last_raised = msgspec.structs.replace(row, moment=None, call=None, node=None)
        return row

    def _is_full(self) -> None:
        self.close("rows", "the record holds its most rows; the rest of the run is not in it", self.caps.rows)

    def close(self, what: str, why: str, limit: int) -> None:
        """Stop taking detail and say why."""
        self.cut(what, why, limit)
        self.buffer.closed = True

    def cut(self, what: str, why: str, limit: int = 0, moment: int | None = None) -> None:
        """Count something that was left out; one truncation row per `what`."""
        old = self._truncations.get(what)
        if old is None:
            old = Truncation(
                n=len(self._truncations),
                what=what,
                why=why,
                limit=limit,
                kept=limit,
                moment=None if self.is_closed else moment,
            )
        self._truncations[what] = msgspec.structs.replace(old, seen=max(old.seen, limit) + 1)
        self._dirty = True

    @property
    def dirty(self) -> bool:
        """Something waits to be sent."""
        return self._dirty or self.buffer.dirty

    def flush_if_due(self) -> None:
        """Flush unless the last one was a moment ago."""
        if self.dirty and time.monotonic() - self._flushed_at >= self.caps.flush_seconds:
            self.flush()

    def flush(self) -> None:
        """Send everything that was taken."""
        if not self.dirty or self._sink is None or self._pid != os.getpid():
            return
        # an exception from a signal handler of the program in the middle of a frame would spoil the rest of the stream
        before = _signal.pthread_sigmask(_signal.SIG_BLOCK, ())
        try:
            # inside: it runs a handler that is due, and if that raises the signals are blocked already
            _signal.pthread_sigmask(_signal.SIG_BLOCK, _SIGNALS)
            self._flush()
        finally:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, before)

    def _flush(self) -> None:
        self._flushed_at = time.monotonic()
        data, most = self.buffer.drain(), self.caps.record_bytes
        if self.sent_bytes + len(data) > most - max(most // 8, 2 * _LAST_BYTES) and not self.is_closed:
            # what is in the buffer is dropped: rows already sent never refer to rows that were not
            self.close("record bytes", "the record is full; the rest of the run is not in it", most)
            data = self._keep_places(data)
        self._dirty = False
        for what, times in self.buffer.take_cuts().items():
            old = self._truncations[what]
            self._truncations[what] = msgspec.structs.replace(old, seen=old.seen + times)
        if not self._sealed:
            self._send(self._trim_to_cap(data + self._encode_truncations(self._is_due)))

    def _keep_places(self, data: bytes) -> bytes:
        """Of frames that are dropped what is kept all the same: places, and exceptions and warnings by themselves."""
        for table, rows in batches(data):
            for row in rows if table in _ALWAYS else ():
                self.add(table, row)
        return self.buffer.drain()

    def _trim_to_cap(self, data: bytes) -> bytes:
        """Return what a closed writer may still send; once that does not fit, nothing but the end follows."""
        if self.is_closed:
            is_large = self.sent_bytes + len(data) > self.caps.record_bytes - _LAST_BYTES
            self._sealed = is_large or self.rows + self._told_rows > self.caps.rows - _LAST_ROWS
        return b"" if self._sealed else data

    def _is_due(self, row: Truncation) -> bool:
        """Write a count when it is the first of its kind, and when it has doubled."""
        told = self._told.get(row.what)
        return told is None or (not self.is_closed and row.seen >= 2 * told)

    def _encode_truncations(self, is_due: Callable[[Truncation], bool]) -> bytes:
        due = [row for row in self._truncations.values() if is_due(row)]
        self._told |= {row.what: row.seen for row in due}
        self._told_rows += len(due)
        return b"".join(batch_frames("truncations", due))

    def end(self, end: End) -> None:
        """Flush and send the last frame."""
        self.flush()
        if self._sealed:
            raised = self._last_raised
            if raised is None or raised.n != end.exception:
                end = msgspec.structs.replace(end, exception=None)
            else:
                self._send(_short(raised))
        self._send(self._encode_truncations(lambda row: self._sealed or row.seen != self._told.get(row.what)))
        self._send(end_frame(end))
        self._sink = None

    def drop(self) -> None:
        """Send nothing any more: what is written belongs to another process."""
        self._sink = None

    def _send(self, data: bytes) -> None:
        if self._sink is None or not data or self._pid != os.getpid():
            return
        self.sent_bytes += len(data)
        try:
            self._sink(data)
        except Exception:
            self._sink = None  # nobody listens any more; the program goes on


def _short(raised: Raised) -> bytes:
    """Encode the uncaught exception by itself, with as much of its text and frames as there is room for."""
    row = msgspec.structs.replace(raised, site=None, message=raised.message[:400], frames=raised.frames[-8:], facts={})
    while len(_ENCODE(row)) > _LAST_RAISED and row.frames:
        row = msgspec.structs.replace(row, frames=row.frames[1:])
    return b"".join(batch_frames("raised", [row]))
