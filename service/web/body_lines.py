"""A body of many lines, read one by one: no more than a line is in hand at once, however long the body is."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from service.problems.errors import Place, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

LINE_BYTES: Final = 2 << 20
"""Of one line: what one request for a run may have."""

_PIECE_BYTES: Final = 256 << 10


class _Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line that is not blank.

    Attributes:
        number: From 1, blank ones counted. raw: None: it is longer than `LINE_BYTES`. digest: SHA-256 of all of it.
    """

    number: int
    raw: bytes | None
    digest: bytes

    def whole(self) -> bytes:
        """Its bytes.

        Raises:
            Problem: `too-large`.
        """
        if self.raw is not None:
            return self.raw
        detail = f"Line {self.number} has more than {LINE_BYTES:,} bytes."
        raise Problem("too-large", detail, places=(Place(pointer="#", code="too-large", detail=detail),))


def lines_of(stream: _Stream) -> Iterator[Line]:
    """Yield the lines of a stream; only one of them is in memory at a time."""
    number, raw, digest, size = 1, bytearray(), hashlib.sha256(), 0
    while piece := stream.read(_PIECE_BYTES):
        parts = piece.split(b"\n")
        for at, part in enumerate(parts):
            digest.update(part)
            size += len(part)
            if size <= LINE_BYTES:
                raw += part
            if at == len(parts) - 1:
                break
            if size > LINE_BYTES or raw.strip():
                yield Line(number=number, raw=bytes(raw) if size <= LINE_BYTES else None, digest=digest.digest())
            number, raw, digest, size = number + 1, bytearray(), hashlib.sha256(), 0
    if size > LINE_BYTES or raw.strip():
        yield Line(number=number, raw=bytes(raw) if size <= LINE_BYTES else None, digest=digest.digest())
