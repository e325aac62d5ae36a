"""The only scheduler: every second it takes back what died, and wakes up who sleeps.

Each duty is a separate short transaction and may fail alone; two reapers do no harm, each statement is fenced by the
run's status, but one of them leads. What may take long has separate threads beside this one: what recorders sent is
shown and ended by one, and records are judged by another.
"""

from __future__ import annotations

import datetime
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from store.access import idempotency, shares
from store.admin import workers
from store.audits import judging as audit_judging
from store.database.missing_module import describe_class
from store.database.session import Database
from store.recorders import ending as recorder_end
from store.recorders import frames as recorder_frames
from store.recorders.live_view import Views
from store.records.expiry import partitions, removal
from store.runs import lifecycle, snippets
from store.runs.clock import Clock, move_times
from store.webhooks import digest, outbox
from workers.upkeep.leader import Leadership
from workers.upkeep.rejudging import Rejudging
from workers.upkeep.side_thread import SideThread
from workers.watched_judging import WatchedJudging

TURN_SECONDS: Final = 1.0
IDLE_WAKE_SECONDS: Final = 30.0
"""Between wake-ups for a queue that no live worker serves: a worker looks by itself when it starts."""

KEYS_SECONDS: Final = 60.0
"""Between two looks for idempotency keys that have expired: one that is asked for is dropped at once anyway."""

DIGESTS_SECONDS: Final = 600.0
"""Between two looks for weekly digests that are wanted and not made."""

EXPIRE_SECONDS: Final = 10.0
LEFTOVERS_SECONDS: Final = 3600.0
MONTHS_SECONDS: Final = 3600.0
"""Between two looks for months to make and to drop."""

EXPIRED_AT_ONCE: Final = 20
"""Records dropped in one round, at most, and as many for the size cap: leases are looked at every second."""

ENDING_SECONDS: Final = 1.0
"""Of one round for ends of watched runs, and one run more."""

BEHIND_SECONDS: Final = 0.1
"""Between two rounds while ends wait: those of a job of 64 ranks come all at once, and their jobs' owners look."""

SHOWING_SECONDS: Final = 0.5
"""Of one round for what recorders have sent, and one piece of them more."""

BEAT_FILE: Final = "reaper.beat"
"""In the home: touched after each round, for `backprobe reaper --check`."""

_log: Final = logging.getLogger(__name__)


class Reaper:
    """Does its round every second until it is stopped.

    Args:
        home: Where its lock and beat files are.
        publish: Sends a wake-up for a queue.
        max_database_bytes: As in `StoreSettings`.
        clock: Of the database.
    """

    def __init__(
        self,
        database: Database,
        home: Path,
        publish: Callable[[str], None],
        max_database_bytes: int | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._max_database_bytes = max_database_bytes
        self._database, self._home, self._publish = database, home, publish
        self._leadership = Leadership(database, home)
        self._woken_at: dict[str, float] = {}
        self._done_at: dict[str, float] = {}
        self._rejudging = Rejudging(database)
        self._views = Views(database)
        self._watched = WatchedJudging(database)
        self._clock = clock or Clock(database)
        self._set_by = 0.0
        """Seconds that are still to be made up for."""

    def serve(self, stop: threading.Event) -> None:
        """Work until `stop` is set."""
        leads = threading.Event()
        duties = {"recorders": self._see_to_recorders, "judging": self._judge}
        beside = [SideThread(name, duty, stop, leads) for name, duty in duties.items()]
        while not stop.is_set():
            if not self._guard_call("leading", lambda: self._reap_if_leader(leads)):
                leads.clear()
            for duty in beside:
                duty.see_to()
            (self._home / BEAT_FILE).touch()
            stop.wait(TURN_SECONDS)
        for duty in beside:
            duty.end()
        self._leadership.close()

    def round(self) -> None:
        """Each duty once, one after the other."""
        self._reap()
        self._see_to_recorders()
        self._judge()

    def _reap(self) -> None:
        """Do everything that is short."""
        if self._guard_call("looking at the clock", self._make_up_for_clock):
            self._guard_call("expiring leases", self._expire_leases)
            self._guard_call("expiring queued runs", self._expire_queued)
        self._guard_call("dropping silent workers", self._drop_silent)
        self._guard_call("waking workers", self._wake)
        self._guard_call("writing digests", self._write_digests)
        self._guard_call("planning deliveries", self._plan_deliveries)
        self._guard_call("judging audits", self._judge_audits)
        self._guard_call("dropping expired keys", self._drop_keys)
        self._guard_call("making and dropping months", self._turn_months)
        self._guard_call("dropping old records", self._expire_records)
        self._guard_call("deleting programs", self._expire_programs)
        self._guard_call("folding what tenants store", self._fold_bytes)

    def _see_to_recorders(self) -> float:
        """Decode what recorders sent, as long as it may take; return the seconds to rest."""
        behind: list[bool] = []
        self._guard_call("ending recorders", lambda: behind.append(self._end_recorders()))
        self._guard_call("showing recorders", lambda: self._views.turn(SHOWING_SECONDS))
        return BEHIND_SECONDS if any(behind) else TURN_SECONDS

    def _judge(self) -> float:
        """Up to 80 s for one record; seconds to rest come back."""
        self._guard_call("judging recorders", self._watched.turn)
        self._guard_call("judging again", self._rejudging.turn)
        return TURN_SECONDS

    def _reap_if_leader(self, leads: threading.Event) -> None:
        if self._leadership.mine():
            leads.set()
            self._reap()
        else:
            leads.clear()
            self._clock.look()  # whoever leads makes up for what is seen meanwhile

    def _guard_call(self, what: str, duty: Callable[[], None]) -> bool:
        try:
            duty()
        except Exception as error:  # noqa: BLE001 - one duty's failure must not stop the others, nor the next round
            if not self._database.away(error):
                _log.warning("%s failed: %s", what, describe_class(error))
            return False
        return True

    def _clock_was_set(self) -> bool:
        """Since the last round; what it was set by is made up for before anything is expired."""
        self._set_by += self._clock.look()
        return bool(self._set_by)

    def _make_up_for_clock(self) -> None:
        """First: a clock that was set would else be taken for leases that ran out."""
        if self._clock_was_set():
            moved = move_times(self._database, self._set_by)
            _log.warning("the database's clock was set by %+.1f s: %d runs were moved with it", self._set_by, moved)
            self._set_by = 0.0

    def _expire_leases(self) -> None:
        expired = lifecycle.expire_leases(self._database, unless=self._clock_was_set)
        for what, ids in (("requeued", expired.requeued), ("lost", expired.lost), ("canceled", expired.canceled)):
            if ids:
                _log.warning("leases ran out; %s: %s", what, ", ".join(ids))

    def _expire_queued(self) -> None:
        lost = lifecycle.expire_queued(self._database, unless=self._clock_was_set)
        if lost:
            _log.warning("no worker came; lost: %s", ", ".join(lost))

    def _end_recorders(self) -> bool:
        """Whether more of them wait than there was time for."""
        until = time.monotonic() + ENDING_SECONDS
        for overdue in recorder_end.overdue(self._database):
            try:
                if recorder_end.end_overdue(self._database, overdue) and not overdue.was_told:
                    _log.warning("its recorder is silent, or it was canceled: %s was ended", overdue.public_id)
            except Exception as error:  # noqa: BLE001 - the fence around a task: the next one's frames may be better
                if self._database.away(error):
                    return False
                _log.error("the run %s of a recorder could not be ended: %s", overdue.public_id, type(error).__name__)
            if time.monotonic() > until:
                return True
        return False

    def _drop_silent(self) -> None:
        if not self._is_due("silent", workers.SILENT_SECONDS / 6):
            return
        with self._database.begin() as transaction:
            gone = workers.drop_silent(transaction)
        if gone:
            _log.warning("silent workers: %s", ", ".join(gone))

    def _plan_deliveries(self) -> None:
        with self._database.read() as transaction:  # nearly always nothing: look before taking the write lock
            waits = outbox.waits(transaction)
        if waits:
            with self._database.begin() as transaction:
                outbox.plan(transaction)

    def _write_digests(self) -> None:
        if not self._is_due("digests", DIGESTS_SECONDS):
            return
        monday = digest.week_before(datetime.datetime.now(datetime.UTC))
        with self._database.read() as transaction:
            missing = digest.find_missing(transaction, monday)
        if missing:
            with self._database.begin() as transaction:
                digest.enqueue(transaction, missing)

    def _judge_audits(self) -> None:
        with self._database.read() as transaction:  # as with deliveries
            waits = audit_judging.waits(transaction)
        if waits:
            audit_judging.settle(self._database)

    def _drop_keys(self) -> None:
        if self._is_due("keys", KEYS_SECONDS):
            with self._database.begin() as transaction:
                idempotency.drop_expired(transaction)

    def _turn_months(self) -> None:
        if self._is_due("months", MONTHS_SECONDS):
            partitions.make_ahead(self._database)
            gone = partitions.drop(self._database)
            if gone:
                _log.info("months dropped: %s", ", ".join(partition.name for partition in gone))

    def _expire_records(self) -> None:
        if not self._is_due("records", EXPIRE_SECONDS):
            return
        gone = list(removal.expire(self._database, limit=EXPIRED_AT_ONCE))
        if self._max_database_bytes is not None:
            gone += removal.shrink(self._database, self._max_database_bytes, limit=EXPIRED_AT_ONCE)
        if gone:
            _log.info("%d records expired, %d rows", len(gone), sum(expired.rows for expired in gone))
            removal.give_back_pages(self._database)
        if self._is_due("leftovers", LEFTOVERS_SECONDS):
            removal.leftovers(self._database)
            removal.drop_sent(self._database)
            recorder_frames.drop_left(self._database)

    def _expire_programs(self) -> None:
        if not self._is_due("programs", EXPIRE_SECONDS):
            return
        programs = snippets.expire_unused(self._database)
        if programs:
            _log.info("%d programs that no run keeps were deleted", programs)

    def _fold_bytes(self) -> None:
        if self._is_due("bytes", EXPIRE_SECONDS):
            shares.fold(self._database)

    def _is_due(self, duty: str, seconds: float) -> bool:
        """So long has passed since this was last true, or it never was."""
        now = time.monotonic()
        if now - self._done_at.get(duty, -seconds) < seconds:
            return False
        self._done_at[duty] = now
        return True

    def _wake(self) -> None:
        """Per queue as many wake-ups as could be answered; at least one if anything waits."""
        with self._database.read() as transaction:
            depths = lifecycle.depths(transaction)
            offers = {depth.queue: workers.combine_offers(transaction, depth.queue) for depth in depths}
        now = time.monotonic()
        for depth in depths:
            offer = offers[depth.queue]
            pause = 0.0 if offer.workers else IDLE_WAKE_SECONDS
            if not depth.claimable or now - self._woken_at.get(depth.queue, -IDLE_WAKE_SECONDS) < pause:
                continue
            self._woken_at[depth.queue] = now
            for _ in range(max(1, min(depth.claimable, offer.idle_slots))):
                self._publish(depth.queue)
