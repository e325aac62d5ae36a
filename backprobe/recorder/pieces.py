"""Frames gathered into pieces: what one request carries, or one file of the spool."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MOST_BYTES: Final = 3 << 20
"""Of one piece; a request may have 4 MiB."""

MOST_FRAMES: Final = 1500
"""Of one piece; a request may have 2,000."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Frames that follow each other, in memory or in a file.

    Attributes:
        first: Number of the first one. count: How many.
        held: The frames; None: they are in `path`.
        path: Their file; None: they are in memory only.
    """

    first: int
    count: int
    size: int
    held: bytes | None = None
    path: Path | None = None

    def read(self) -> bytes:
        """Read the frames.

        Raises:
            OSError: the file cannot be read.
        """
        if self.held is not None:
            return self.held
        if self.path is None:
            raise ValueError(f"the frames from {self.first} are neither in memory nor in a file")
        return self.path.read_bytes()


def gather_pieces(frames: Iterable[bytes], first: int) -> Iterator[Piece]:
    """Frames as pieces; the first of them has the number `first`."""
    held: list[bytes] = []
    size = 0
    for frame in frames:
        if held and (size + len(frame) > MOST_BYTES or len(held) == MOST_FRAMES):
            yield Piece(first=first, count=len(held), size=size, held=b"".join(held))
            first, held, size = first + len(held), [], 0
        held.append(frame)
        size += len(frame)
    if held:
        yield Piece(first=first, count=len(held), size=size, held=b"".join(held))
