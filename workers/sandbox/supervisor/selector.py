"""The selector thread of a supervisor: every descriptor of every run in flight, and every clock.

All state is this thread's. Others reach it by `submit`, `stop` and `continue_reading`, which leave a note and wake it.
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import selectors
import threading
import time
from collections.abc import Callable
from typing import Final

from workers.sandbox.levels.names import Confinement
from workers.sandbox.process import messages
from workers.sandbox.process.messages import ChildEnded, ForkRefused, Kill, Ready, Started, Unready
from workers.sandbox.remote.boot import Link
from workers.sandbox.supervisor.attempt import Again, Attempt
from workers.sandbox.supervisor.mailbox import Notes
from workers.sandbox.supervisor.outcome import Stop
from workers.sandbox.supervisor.pool import AGAIN_SECONDS, Pool, Warm
from workers.sandbox.supervisor.slots import Slots
from workers.sandbox.supervisor.spare_child import Ahead
from workers.sandbox.supervisor.streams import DRIP_SECONDS, Streams

KILL_SECONDS: Final = 10.0
"""From the order to kill to the report of the end; then the zygote itself is given up."""

QUIET_SECONDS: Final = 0.25
"""After the end, streams that something still holds open are read until they are silent for so long."""

TURN_SECONDS: Final = 0.05
"""The longest time between two looks at the clock while something runs."""

STALL_SECONDS: Final = 60.0
"""The longest that this thread may be at one thing; then whoever waits for a run ends it without this thread."""


class Watch:
    """Serves all runs of one supervisor; `serve` is the body of its thread.

    Args:
        ahead: In a pause a child is forked and locked down for whoever comes next.
    """

    def __init__(
        self, boot: Callable[[], Link], confinement: Confinement, *, one_shot: bool = False, ahead: bool = True
    ) -> None:
        self._slots = Slots(confinement)
        self.pool = Pool(boot, self._listen, self._unlisten, one_shot=one_shot)
        self._selector = selectors.DefaultSelector()
        self._streams = Streams(
            self._selector, self._stop, lambda attempt: self._end_if_over(attempt, time.monotonic()), confinement
        )
        self._notes = Notes(self._selector)
        self._serials = itertools.count(1)
        self._waiting: collections.deque[Attempt] = collections.deque()
        self._flying: dict[int, tuple[Attempt, Warm]] = {}
        alone = confinement.level == "gvisor"  # a child that waits would be a second one under its sentry
        self._ahead = Ahead(self._flying, self._streams, self._stop, wanted=ahead and not one_shot and not alone)
        self._closing = threading.Event()
        self._over = threading.Event()
        self.warm = threading.Event()
        """A run that is submitted now starts at once."""
        self.turned_at = time.monotonic()
        """When the thread last began a turn; it stands still while nothing runs."""

    # what other threads call

    def submit(self, attempt: Attempt) -> None:
        """Start it as soon as a zygote is warm."""
        self._notes.leave(lambda: self._waiting.append(attempt))
        if self._over.is_set():  # after that nobody looks at notes
            self._give_up(attempt, "the supervisor has ended")

    def stop(self, attempt: Attempt, why: Stop) -> None:
        """End it; the first reason stays."""
        self._notes.leave(lambda: self._stop(attempt, why))

    def continue_reading(self, attempt: Attempt) -> None:
        """Read on, if the attempt waited until some of its record was decoded."""
        if attempt.may_read_on:
            self._notes.leave(lambda: self._streams.resume(attempt))

    def abandon(self, attempt: Attempt) -> None:
        """End it; nobody waits for it any more, so nothing of its record is decoded."""
        attempt.abandoned = True
        self.stop(attempt, "canceled")

    def describe_stall(self, since: float) -> str | None:
        """Why nothing can be expected of the thread for a run that was submitted then; None: it is at work."""
        seconds = time.monotonic() - max(self.turned_at, since)
        return f"the supervisor's thread has been at one thing for {seconds:.0f} s" if seconds > STALL_SECONDS else None

    def close(self) -> None:
        """End everything; `serve` returns."""
        self._closing.set()
        self._notes.leave(lambda: None)

    # the thread

    def serve(self) -> None:
        """Work until `close`. Should this thread die of an internal error, every run ends as lost, and none starts."""
        try:
            while not self._closing.is_set():
                self._turn()
        finally:
            self.warm.clear()
            self._end_all()

    def _turn(self) -> None:
        self.turned_at = time.monotonic()
        self.pool.tend(time.monotonic())
        self._start_waiting()
        if (made := self._ahead.wanted_on(self.pool.free, time.monotonic())) is not None and self.pool.free is not None:
            self._start(made, self.pool.free)
        (self.warm.clear if self.pool.free is None else self.warm.set)()
        settled = self._slots.settle() and self.pool.settled
        busy = not self._ahead.all_wait or self._waiting or not settled or self._ahead.is_due(self.pool.free)
        for key, _ in self._selector.select(TURN_SECONDS if busy else None):
            key.data()
        self._look_at_clocks(time.monotonic())

    def _start_waiting(self) -> None:
        if self.pool.current is None and self.pool.failure is not None:
            for attempt in [waiting for waiting in self._waiting if time.monotonic() > waiting.waits_until]:
                self._waiting.remove(attempt)
                self._give_up(attempt, self.pool.failure)
        for attempt in [waiting for waiting in self._waiting if waiting.stop is not None]:
            self._waiting.remove(attempt)
            attempt.inbox.put(attempt.facts())
        while self._waiting and (zygote := self.pool.free) is not None:
            self._start(self._waiting.popleft(), zygote)

    def _start(self, attempt: Attempt, zygote: Warm) -> None:
        attempt.devices = zygote.devices
        if not attempt.ahead and self._ahead.adopted_by(attempt, zygote):
            return
        try:
            order, descriptors, sync = attempt.open(next(self._serials), time.monotonic(), self._slots)
        except OSError as error:
            self._give_up(attempt, f"there is no place for the run: {error}")
            self._ahead.note_landing(attempt)
            return
        zygote.attempts[attempt.serial] = attempt
        self.pool.note_fork(zygote)
        self._flying[attempt.serial] = attempt, zygote
        self._streams.open(attempt, sync)
        try:
            messages.send(zygote.link.control, order, descriptors)
        except OSError:
            self._end_attempts_of(zygote)
        finally:
            messages.close_all(descriptors)

    # one run

    def _stop(self, attempt: Attempt, why: Stop) -> None:
        if attempt.stop is not None:
            return
        attempt.stop = why
        self._kill(attempt)

    def _kill(self, attempt: Attempt) -> None:
        flying = self._flying.get(attempt.serial)
        if flying is None or attempt.ended is not None:
            return
        attempt.kill_sent_at = time.monotonic()
        try:
            messages.send(flying[1].link.control, Kill(serial=attempt.serial))
        except OSError:
            self._end_attempts_of(flying[1])

    def _look_at_clocks(self, now: float) -> None:
        for serial, (attempt, zygote) in list(self._flying.items()):
            if serial not in self._flying:
                continue  # given up with another's warm process, in this very round
            if attempt.may_read_on:  # all was decoded in the moment before the pipe was paused, so nobody said so
                self._streams.resume(attempt)
            if attempt.ended is not None:
                self._end_if_over(attempt, now)
            elif attempt.stop is not None:
                if now - attempt.kill_sent_at > KILL_SECONDS:
                    self._end_attempts_of(zygote)
            elif (why := attempt.overdue(now)) is not None:
                self._stop(attempt, why)

    def _end_if_over(self, attempt: Attempt, now: float) -> None:
        if attempt.ended is None or attempt.serial not in self._flying:
            return
        pipes = attempt.pipes.values()
        if any(pipe.paused for pipe in pipes):
            return
        silent = now - max(attempt.heard_at, attempt.ended_at) > QUIET_SECONDS
        if silent or now > attempt.patience_until or not any(pipe.open for pipe in pipes):
            self._land(attempt)
            attempt.inbox.put(attempt.facts())

    def _land(self, attempt: Attempt) -> None:
        """Close every descriptor of an attempt, which is then no longer in flight."""
        self._ahead.note_landing(attempt)
        _, zygote = self._flying.pop(attempt.serial)
        zygote.attempts.pop(attempt.serial, None)
        self._streams.close(attempt)
        attempt.leave(self._slots)

    def _give_up(self, attempt: Attempt, why: str) -> None:
        attempt.broken = attempt.broken or why
        attempt.inbox.put(attempt.facts())

    # the zygotes

    def _listen(self, zygote: Warm) -> None:
        self._selector.register(zygote.link.control, selectors.EVENT_READ, lambda: self._report(zygote))

    def _unlisten(self, zygote: Warm) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(zygote.link.control)

    def _report(self, zygote: Warm) -> None:
        if zygote.link.control.fileno() < 0:
            return  # given up earlier in this turn
        try:
            report, descriptors = messages.receive_report(zygote.link.control)
        except BlockingIOError:
            return
        if isinstance(report, Ready):
            self.pool.is_warm(zygote, report)
        elif isinstance(report, Unready):
            zygote.unready = report.why
        elif isinstance(report, Started) and report.serial in zygote.attempts:
            try:
                zygote.attempts[report.serial].known_by(descriptors, zygote.link.guest)
            except OSError:
                self._end_attempts_of(zygote)
        elif isinstance(report, ChildEnded) and report.serial in zygote.attempts:
            attempt = zygote.attempts[report.serial]
            attempt.ended, attempt.ended_at = report, time.monotonic()  # first: nothing starts it again from here on
            self._streams.last_word(attempt)
            if not attempt.locked and attempt.stop is None:
                attempt.broken = attempt.broken or "the child ended before it was locked down"
            attempt.patience_until = attempt.ended_at + DRIP_SECONDS
            zygote.wear(report.rss_bytes + (0 if attempt.under is None else attempt.under.grown()))
            self._end_if_over(attempt, attempt.ended_at)
        elif isinstance(report, ForkRefused) and report.serial in zygote.attempts:
            self.pool.unfit(zygote)
            self._once_more(zygote.attempts[report.serial], report.why)
        elif report is None:
            self._end_attempts_of(zygote)
        messages.close_all(descriptors)

    def _end_attempts_of(self, zygote: Warm) -> None:
        attempts = list(zygote.attempts.values())
        self.pool.drop_zygote(zygote)
        for attempt in attempts:
            if attempt.ended is not None:
                continue  # only its pipes are still being read
            attempt.kill_group()
            self._once_more(attempt, "the warm process was lost")

    def _once_more(self, attempt: Attempt, why: str) -> None:
        """Its zygote failed it: start it again from the beginning, once; or let it end if it was to end."""
        attempt.ended_at = time.monotonic()
        self._land(attempt)
        if attempt.ahead:
            return
        if attempt.stop == "sandbox" and not attempt.locked:  # what failed before `go` may have failed with it
            attempt.stop = attempt.broken = None
        if attempt.stop is not None:
            attempt.inbox.put(attempt.facts())
        elif attempt.tries > 1:
            self._give_up(attempt, f"{why}, twice")
        else:
            attempt.clear()
            attempt.waits_until = time.monotonic() + AGAIN_SECONDS
            attempt.inbox.put(Again())
            self._waiting.appendleft(attempt)

    def _end_all(self) -> None:
        self._over.set()
        self._notes.take()
        flying = [attempt for attempt, _ in self._flying.values()]
        for attempt in (*flying, *self._waiting):  # before all that can fail: somebody waits for each
            if attempt.ahead:  # nobody waits for it, and it did not fail
                attempt.stop = attempt.stop or "canceled"
            self._give_up(attempt, "the worker shut down")
        self._waiting.clear()
        with contextlib.ExitStack() as last:  # from the last to the first; each is done, whatever happens in another
            last.callback(self._notes.close)
            last.callback(self._selector.close)
            last.callback(self._slots.close)
            last.callback(self.pool.close)
            for attempt in flying:
                last.callback(self._land, attempt)
        self.pool.failure = "the supervisor has ended"
