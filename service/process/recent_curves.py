"""The curves of long runs that were asked for last: a page and its script ask for the same ones.

The peaks of 100,000 steps take 90 ms of a query. A run that has ended has the same curves for as long as its version is
the same; of one that goes on nothing is kept.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from store import queries

if TYPE_CHECKING:
    from store.database.session import Transaction
    from store.queries import StepCurves
    from store.runs.model import RunRow

MOST_KEPT: Final = 16
"""Of up to 2,000 values in each of four columns: 4 MiB at most."""

_ALL: Final = (0, 2**31 - 1)


class RecentCurves:
    """What one process keeps. Its values are read by several threads and never changed."""

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._kept: OrderedDict[tuple[str, int, tuple[int, int], int], StepCurves] = OrderedDict()

    def load(self, transaction: Transaction, run: RunRow, points: int, steps: tuple[int, int] = _ALL) -> StepCurves:
        """Return `queries.step_curves` of these steps, the first and the last one."""
        asked = (run.id, run.version, steps, points)
        with self._changing:
            known = self._kept.get(asked)
            if known is not None:
                self._kept.move_to_end(asked)
                return known
        found = queries.step_curves(transaction, run, first_step=steps[0], last_step=steps[1], points=points)
        if run.ended and not found.exact:
            with self._changing:
                self._kept[asked] = found
                while len(self._kept) > MOST_KEPT:
                    self._kept.popitem(last=False)
        return found
