"""The trusted side's end of one of a child's streams."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

StreamName = Literal["stdout", "stderr", "record"]

OUTPUT_SECONDS: Final = 1.0
"""Between two looks at what a program that goes on has printed: each copies up to 128 KiB."""


@dataclass(slots=True)
class Pipe:
    """The reading end of one of the child's streams.

    Attributes:
        paused: Not looked at for now.
    """

    name: StreamName
    descriptor: int
    count: int = 0
    tail: bytearray = field(default_factory=bytearray)
    open: bool = True
    paused: bool = False

    def close(self) -> None:
        """Close it; what was read stays."""
        if self.open:
            self.open = False
            os.close(self.descriptor)


def text_of(tail: bytes) -> str:
    """Decode what a program printed. Neither database takes a NUL in a text."""
    return tail.decode("utf-8", "replace").replace("\0", "\ufffd")


class LiveOutput:
    """What a program that goes on has printed so far.

    Args:
        take: Gets `"output"` and, in a list of one, the tail and the size of stdout and of stderr; None: nobody does.
    """

    def __init__(self, take: Callable[[str, Sequence[Any]], None] | None) -> None:
        self._take = take
        self._sizes = (0, 0)
        self._again_at = 0.0

    def look(self, pipes: Mapping[StreamName, Pipe]) -> None:
        """Hand the output on if more has come, once in `OUTPUT_SECONDS` at most."""
        now = time.monotonic()
        out, err = pipes.get("stdout"), pipes.get("stderr")
        if self._take is None or out is None or err is None or now < self._again_at:
            return
        if (out.count, err.count) != self._sizes:
            self._sizes, self._again_at = (out.count, err.count), now + OUTPUT_SECONDS
            named = {"stdout": out, "stderr": err}
            told = {
                name: {"tail": text_of(bytes(pipe.tail)), "total_bytes": pipe.count} for name, pipe in named.items()
            }
            self._take("output", [told])
