"""Graphs that grow from step to step: what was alive after each backward call of a statement.

1. After three calls in a row with more live nodes each, the names that keep them are searched for, once per statement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backprobe.capture.tracking.graph.retained_names import tell_holders
from backprobe.capture.tracking.graph.retention import roots_at
from backprobe.record import BackwardCall, Growth

if TYPE_CHECKING:
    from backprobe.capture.recorder import Recorder

RISES: Final = 3
"""Calls in a row, each with more alive than the one before: one or two may be a warm-up."""


class Growths:
    """Counts what is alive after each backward call."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._last: dict[int | None, tuple[int, int]] = {}
        self._searched: set[int | None] = set()

    def after_call(self, row: BackwardCall, moment: int) -> None:
        """A backward call that was walked ended."""
        recorder = self._recorder
        if row.parent is not None or row.outcome != "finished":
            return
        recorder.bury()
        alive = len(recorder.nodes)
        recorder.writer.add(
            "growth",
            Growth(
                call=row.call, moment=moment, site=row.site, live_nodes=alive, held_bytes=recorder.nodes.held[1],
                live_tensors=len(recorder.tensors.live),
            ),
        )  # fmt: skip
        before, rises = self._last.get(row.site, (alive, 0))
        rises = rises + 1 if alive > before else 0
        self._last[row.site] = (alive, rises)
        if rises >= RISES and row.site not in self._searched:
            self._searched.add(row.site)
            tell_holders(recorder, roots_at(recorder, moment), row.call)
