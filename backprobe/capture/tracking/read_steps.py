"""Which of the steps that are not taken in full are read: their loss, the norm of their gradients, their rates.

To read a step takes 40 us where the program fits into the processor's caches and 250 us where each step of the program
empties them: nothing beside a step of a second, 5 % of one of 5 ms. So a watched job whose steps are short is read at
every step first and at each tenth later. Nothing is asked of the others but that they are counted.

    step        0 .. 49      50 51 .. 59 60 61
    read        each         50          60       (if a step takes less than 50 ms)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from backprobe.capture.tracking.gradients import WHOLE_EVERY

READ_FIRST: Final = 50
"""Steps of which each is read."""

READ_EVERY: Final = WHOLE_EVERY
"""Of this many later steps one is read: the one that has the norm of long gradients too."""

_SHORT_NS: Final = 50_000_000
"""A step that takes longer is always read: it costs at most 0.5 % of it."""


class ReadSteps:
    """Decides once, from what the first steps took.

    Args:
        thins: The job is watched; of a program that is run whole each step is read.
    """

    def __init__(self, *, thins: bool) -> None:
        self._thins = thins
        self._taken_ns = self._taken = 0
        self._are_short: bool | None = None

    def took(self, duration_ns: int) -> None:
        """Note that a step has ended which was read and not taken in full."""
        self._taken_ns += duration_ns
        self._taken += 1

    def is_read(self, step: int) -> bool:
        """Whether a step, counted from 0, is read."""
        if not self._thins or step < READ_FIRST or step % READ_EVERY == 0:
            return True
        if self._are_short is None:
            if not self._taken:
                return True
            self._are_short = self._taken_ns < _SHORT_NS * self._taken
        return not self._are_short

    def next_after(self, step: int, why: Callable[[int], object]) -> int:
        """Return the first step after one that is read, or taken in full: then `why(step)` is not None."""
        after = range(step + 1, step + READ_EVERY + 1)
        return next(at for at in after if self.is_read(at) or why(at) is not None)
