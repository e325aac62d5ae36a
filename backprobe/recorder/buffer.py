"""What the job has recorded and the sender has not looked at: a bounded queue of bytes."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from typing import Final

from backprobe.record import Truncation, batch_frames

_LEFT_OUT: Final = 1_000_000
"""Number of the truncation that tells of frames left out here: the record's own are numbered from 0."""


class Buffer:
    """Frames on their way from the job's threads to the sender's.

    Args:
        most_bytes: Here and in pieces that are still in memory.

    Attributes:
        size: Bytes in it. dropped: Times that something did not fit.
    """

    def __init__(self, most_bytes: int) -> None:
        self.size = self.dropped = 0
        self._most = most_bytes
        self._held: deque[bytes] = deque()
        self._lock = threading.RLock()  # a signal's handler may end the job in the middle of `put`

    def put(self, frames: bytes, elsewhere: int) -> None:
        """Take frames, unless they do not fit; what follows may refer to them, so it is left out as well.

        Args:
            frames: Whole ones.
            elsewhere: Bytes that the sender holds in memory.
        """
        with self._lock:
            if self.dropped or self.size + elsewhere + len(frames) > self._most:
                self.dropped += 1
                return
            self._held.append(frames)
            self.size += len(frames)

    def iter_loss_frames(self) -> Iterator[bytes]:
        """As a frame of the record: that something was left out; none where nothing was."""
        if self.dropped:
            why = "the recorder's memory was full, and the service had not taken it"
            row = Truncation(n=_LEFT_OUT, what="frames", why=why, limit=self._most, seen=self.dropped)
            yield from batch_frames("truncations", [row])

    def drain(self) -> deque[bytes]:
        """All that is in it."""
        with self._lock:
            held, self._held, self.size = self._held, deque(), 0
        return held
