"""Graphs that grow from step to step: what was alive after each backward call of a statement.

1. After three calls in a row with more live nodes each, the names that keep them are searched for, once per statement
   and for a few statements: a search looks at all objects of the process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backprobe.capture.tracking.graph.retained_names import tell_holders
from backprobe.capture.tracking.graph.retention import roots_at
from backprobe.record import BackwardCall, Growth

if TYPE_CHECKING:
    from backprobe.capture.recorder import CaptureSession

RISES: Final = 3
"""Calls in a row, each with more alive than the one before: one or two may be a warm-up."""

SEARCHES: Final = 5
"""Statements for which the names are searched for while the program runs."""

SECONDS: Final = 0.1
"""That such a search may take; one pass over the objects of a program costs 0.01 to 0.04."""


class Growths:
    """Counts what is alive after each backward call."""

    def __init__(self, recorder: CaptureSession) -> None:
        self._recorder = recorder
        self._last: dict[int | None, tuple[int, int]] = {}
        self._searched: set[int | None] = set()

    def after_call(self, row: BackwardCall, moment: int) -> None:
        """Measure growth after a backward call that was walked."""
        recorder = self._recorder
        if row.parent is not None or row.outcome != "finished":
            return
        recorder.bury()
        alive = len(recorder.nodes)
        recorder.writer.add(
            "growth",
            Growth(
                call=row.call, moment=moment, site=row.site, live_nodes=alive, held_bytes=recorder.nodes.held_totals[1],
                live_tensors=len(recorder.tensors.live),
            ),
        )  # fmt: skip
        before, rises = self._last.get(row.site, (alive, 0))
        rises = rises + 1 if alive > before else 0
        self._last[row.site] = (alive, rises)
        if rises >= RISES and row.site not in self._searched and len(self._searched) < SEARCHES:
            self._searched.add(row.site)
            tell_holders(recorder, roots_at(recorder, moment), row.call, seconds=SECONDS)
