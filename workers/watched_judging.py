"""Watched runs judged while they go on: a job hears of its NaN when it happens, and not when it ends.

1. All rules judge all that has come, as they will at the end: a finding reported now is reported then too.
2. A run is judged again when new frames have come, and `SHARE` of the time at most: one whose judging takes 0.5 s is
   judged every 10 s. One run is judged in a turn, and all of them together take `SHARE_OF_ALL` of the time: 64 ranks
   of a job do not take the machine from the service that receives them. Tenants take turns.
3. What was judged is known to this process only: another one judges once more, which changes nothing.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from store.database.session import Database
from store.findings.judging_attempts import begin_attempt, end_attempt
from store.findings.rejudging import judged_meanwhile
from store.recorders.judging import OpenRun, open_runs, record_so_far
from workers.judging_budget import broken_off, judged_in_time

SHARE: Final = 0.05
"""Of the time that a run goes on, for judging it."""

SHARE_OF_ALL: Final = 0.2
"""Of the time, for judging all runs that go on: 64 of them at 5 % each would be three cores."""

LEAST_SECONDS: Final = 3.0
"""Between two judgements of one run."""

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Looked:
    """Up to which frame a run was judged, and when it may be judged again."""

    frames: int
    again_at: float


class WatchedJudging:
    """Judges the watched runs of a database as they go on.

    Args:
        clock: Seconds that only grow.
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._database, self._clock = database, clock
        self._looked: dict[int, _Looked] = {}
        self._judged_at: dict[int, float] = {}
        """When a run of each tenant was judged last, by the tenant's number."""
        self._rests_until = clock()

    def turn(self) -> None:
        """Judge one run, if any is due: of the tenant that was served the longest ago, the run that was."""
        if self._clock() < self._rests_until:
            return
        runs = open_runs(self._database)
        known = {run.claim.run_id for run in runs}
        self._looked = {number: looked for number, looked in self._looked.items() if number in known}
        tenants = {run.claim.tenant_id for run in runs}
        self._judged_at = {number: at for number, at in self._judged_at.items() if number in tenants}
        due = [run for run in runs if self._is_due(run)]
        if not due:
            return
        run = min(due, key=self._turn_of)
        began = self._clock()
        try:
            self._judge(run)
        finally:
            now = self._clock()
            pause = max(LEAST_SECONDS, (now - began) / SHARE)
            self._rests_until = began + (now - began) / SHARE_OF_ALL
            self._looked[run.claim.run_id] = _Looked(run.frames, now + pause)
            self._judged_at[run.claim.tenant_id] = now

    def _turn_of(self, open_run: OpenRun) -> tuple[float, float]:
        """Return the sort key of a run: the run with the least key is judged next."""
        looked = self._looked.get(open_run.claim.run_id, _Looked(0, 0.0))
        return self._judged_at.get(open_run.claim.tenant_id, -math.inf), looked.again_at

    def _is_due(self, open_run: OpenRun) -> bool:
        looked = self._looked.get(open_run.claim.run_id)
        return looked is None or (looked.frames < open_run.frames and self._clock() >= looked.again_at)

    def _judge(self, open_run: OpenRun) -> None:
        if not begin_attempt(self._database, open_run.claim.run_id):
            return
        try:
            self._judge_counted(open_run)
        except Exception as error:  # the fence around a task: a stranger's record, maybe
            if self._database.away(error):
                raise
            _log.error("judging %s before its end failed: %s", open_run.claim.public_id, type(error).__name__)
        end_attempt(self._database, open_run.claim.run_id)

    def _judge_counted(self, open_run: OpenRun) -> None:
        record = record_so_far(self._database, open_run)
        if record is None:
            return
        judgement, _ = judged_in_time(record)
        if broken_off(judgement):
            _log.warning("judging %s before its end took too long", open_run.claim.public_id)
            return
        judged_meanwhile(self._database, open_run.claim, judgement)
