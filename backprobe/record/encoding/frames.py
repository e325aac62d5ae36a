"""A stream cut into its frames, for whoever sends them one by one. Nothing is decoded here."""

from __future__ import annotations

from collections.abc import Iterator

from backprobe.record.encoding.codec import LENGTH, MAGIC
from backprobe.record.integrity import BadRecord


def split(stream: bytes) -> Iterator[bytes]:
    """Split a whole stream into its frames, each with its length before it; `MAGIC` may stand before the first.

    Raises:
        BadRecord: the last one is cut.
    """
    at = len(MAGIC) if stream.startswith(MAGIC) else 0
    while at < len(stream):
        size = LENGTH.unpack_from(stream, at)[0] if len(stream) - at >= LENGTH.size else len(stream)
        end = at + LENGTH.size + size
        if end > len(stream):
            raise BadRecord("bad-frame", f"a frame of {size} bytes is cut after {len(stream) - at - LENGTH.size}")
        yield stream[at:end]
        at = end
