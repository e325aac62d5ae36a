"""The trusted side's end of one of a child's streams."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Literal

StreamName = Literal["stdout", "stderr", "record"]


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
