"""The levels of isolation that a run may ask for, wherever it is submitted, stored or run."""

from __future__ import annotations

from typing import Final, Literal

IsolationLevel = Literal["none", "process", "namespace", "gvisor"]

ISOLATION_LEVELS: Final[tuple[IsolationLevel, ...]] = ("none", "process", "namespace", "gvisor")
"""From the weakest to the strongest: a worker that gives one may run what asks for it or for anything weaker."""
