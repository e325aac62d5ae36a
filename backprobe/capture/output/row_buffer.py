"""Rows on their way out: encoded as they come, table by table, cut into frames when they leave.

The Python twin of the core's RowBuffer (`_core_src/output/row_buffer.c`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

import msgspec

_LENGTH: Final = struct.Struct("<I")
_OVERHEAD: Final = 128
"""Bytes that a frame may hold beside its rows."""

_ENCODER: Final = msgspec.msgpack.Encoder()


class RowBuffer:
    """Holds encoded rows; the order inside a table is kept.

    Attributes:
        closed: A cap was reached; set by the writer. dirty: something was taken since the last drain.
        rows: Rows taken in all.
    """

    def __init__(
        self,
        tables: tuple[str, ...],
        encode: Callable[[Any], bytes],
        is_full: Callable[[], object],
        most_rows: int,
        most_frame: int,
        most_batch: int,
    ) -> None:
        self.closed = self.dirty = False
        self.rows = 0
        self._tables: dict[str, list[bytes]] = {table: [] for table in tables}
        self._encode, self._is_full = encode, is_full
        self._most_rows, self._most_frame, self._most_batch = most_rows, most_frame, most_batch

    def add(self, table: str, row: Any) -> None:
        """Take a row of a table.

        Raises:
            ValueError: it is larger than a frame.
        """
        encoded = self._encode(row)
        if len(encoded) > self._most_frame - _OVERHEAD:
            raise ValueError(f"a row of table {table} ({len(encoded)} bytes) could not be kept")
        self._tables[table].append(encoded)
        self.dirty = True
        self.rows += 1
        if self.rows >= self._most_rows and not self.closed:
            self._is_full()

    def take_cuts(self) -> dict[str, int]:
        """Return what was left out since the last time: nothing, because this twin tells the writer at once."""
        return {}

    def drain(self) -> bytes:
        """Everything that was taken as frames, table by table; empty afterwards."""
        frames: list[bytes] = []
        for table, rows in self._tables.items():
            batch: list[msgspec.Raw] = []
            size = 0
            for row in rows:
                if len(batch) == self._most_batch or size + len(row) > self._most_frame - _OVERHEAD:
                    frames.append(_frame_rows(table, batch))
                    batch, size = [], 0
                batch.append(msgspec.Raw(row))
                size += len(row)
            if batch:
                frames.append(_frame_rows(table, batch))
            rows.clear()
        self.dirty = False
        return b"".join(frames)


def _frame_rows(table: str, rows: list[msgspec.Raw]) -> bytes:
    body = _ENCODER.encode((table, rows))
    return _LENGTH.pack(len(body)) + body
