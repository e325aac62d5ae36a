"""Stored runs judged again with today's rules: by the reaper, a little in each of its rounds, or by a command, all.

Those that somebody asked for come first, then those of another ruleset, newest first. Torch is not needed. The rules
of a process do not change while it lives, so it goes through the stored runs once, and looks again after a while for
what processes with older rules have added.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from backprobe.rules import kept_options, ruleset
from store.database.session import Database
from store.findings import rejudging
from store.findings.judging_attempts import begin_attempt, release_all
from store.findings.rejudging import Change, Due
from workers.judging_budget import broken_off, judged_in_time

TURN_SECONDS: Final = 0.5
"""Of one of the reaper's rounds, at most, and one record more: leases are looked at every second."""

AGAIN_SECONDS: Final = 60.0
"""Between two looks for runs of another ruleset, once there was none left."""

PAGE: Final = 20

_log: Final = logging.getLogger(__name__)

Told = Callable[[str, int, Change | None], None]


@dataclass(slots=True)
class Totals:
    """What came of many runs; `failed` counts those that could not be judged, and stay as they were."""

    runs: int = 0
    new: int = 0
    back: int = 0
    gone: int = 0
    same: int = 0
    failed: int = 0

    def add(self, change: Change | None) -> None:
        """Count one run."""
        if change is None:
            self.failed += 1
            return
        self.runs += 1
        self.new, self.back = self.new + change.new, self.back + change.back
        self.gone, self.same = self.gone + change.gone, self.same + change.same


class Rejudging:
    """Goes through the stored runs of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._ruleset = ruleset()
        self._below = rejudging.NEWEST
        self._again_at = 0.0
        self._served = 0
        """Number of the tenant that had the last turn: 10,000 uploads of one are not before the first of another."""

    def turn(self) -> None:
        """Judge for a short while; what could not be judged is left as it is, and said in the log."""
        until = time.monotonic() + TURN_SECONDS
        for due in self._waiting():
            if self._rejudge_run(due) is None:
                _log.warning("%s could not be judged again", due.public_id)
            if time.monotonic() > until:
                return

    def all(self, most: int | None, told: Told) -> Totals:
        """Judge what waits, at most so many runs, and tell of each one."""
        totals = Totals()
        for done, due in enumerate(self._waiting(), 1):
            change = self._rejudge_run(due)
            totals.add(change)
            told(due.public_id, done, change)
            if done == most:
                break
        return totals

    def release_quarantined(self) -> int:
        """Have the records judged again that ended their judge too often; how many there were."""
        with self._database.begin() as transaction:
            return release_all(transaction)

    def _waiting(self) -> Iterator[Due]:
        while True:
            with self._database.read() as reading:
                asked = rejudging.due(reading, limit=1, served=self._served)
            for due in asked:
                self._served = due.tenant_id
                yield due
            if asked:
                continue
            if time.monotonic() < self._again_at:
                return
            with self._database.read() as reading:
                page = rejudging.older(reading, self._ruleset, below=self._below, limit=PAGE)
            if not page:
                self._below, self._again_at = rejudging.NEWEST, time.monotonic() + AGAIN_SECONDS
                return
            for due in page:
                self._below = due.number
                yield due

    def _rejudge_run(self, due: Due) -> Change | None:
        try:
            change = None
            if not begin_attempt(self._database, due.number):
                return None  # another process began the last one that it may have
            record = rejudging.record_of(self._database, due)
            if record is not None:
                judgement, whys = judged_in_time(record, kept_options(due.rules))
                if broken_off(judgement):
                    _log.warning("judging %s again took too long", due.public_id)
                else:
                    change = rejudging.judged_again(self._database, due, record, judgement, whys)
        except Exception as error:  # the fence around a task: a stranger's record, maybe
            if self._database.away(error):
                raise
            _log.error("judging %s again failed: %s", due.public_id, type(error).__name__)
            change = None
        if change is None:
            rejudging.leave(self._database, due)
        return change
