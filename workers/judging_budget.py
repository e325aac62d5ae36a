"""Judging within a bound: a record is a stranger's, and may be made to be slow for a rule.

1. What is counted is the CPU time of the thread that judges: a loaded machine takes nothing away from a record.
2. A second thread looks at that clock and raises in the first one: a rule that takes too long is left out, then all
   that are left, then whatever is still at work on the findings.
3. Nothing is raised once judging has ended, and no state of a judgement that was broken off is kept.

An exception arrives between two steps of the interpreter: one call into C is waited for. So no pattern of a rule may
try a text twice (`backprobe.rules.framework.suppression_comments`), and the record's own bounds hold the rest.
"""

from __future__ import annotations

import contextvars
import ctypes
import gc
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from backprobe.record import Record
from backprobe.rules import (
    WHY_NO_TIME,
    WHY_SLOW,
    Judgement,
    JudgeOptions,
    JudgingTooLong,
    RuleTooSlow,
    WhyNone,
    judge,
    unjudged,
    why_none,
)

RULE_SECONDS: Final = 20.0
"""Of CPU time, from which on a rule is ended: 90,560 snapshots are judged by all rules in 0.3 s."""

NEXT_SECONDS: Final = 5.0
"""After that, what each rule has that is slow as well."""

ALL_SECONDS: Final = 60.0
"""After which no rule begins any more."""

LAST_SECONDS: Final = 20.0
"""Beyond `ALL_SECONDS`, for all that is done with findings; then there are none."""

LOOK_SECONDS: Final = 0.25
"""Between two looks at the clock."""

_RAISE: Final = ctypes.pythonapi.PyThreadState_SetAsyncExc

_log: Final = logging.getLogger(__name__)

Judged = tuple[Judgement, Mapping[int, WhyNone]]


def judged_in_time(record: Record, options: JudgeOptions | None = None) -> Judged:
    """Judge a record, and say why tensors have no gradient; rules for which there was no time are named as not run.

    Raises:
        Exception: whatever a record that no rule can digest makes of it, but for a bug in a rule.
    """
    alarm = _Alarm()
    collects = gc.isenabled()
    try:
        try:
            alarm.start()
            # in a copied context: a rule that is broken off leaves the variables of that context as they happen to be
            judged = contextvars.copy_context().run(_judge_or_none, record, options)
        finally:
            alarm.end()
    except RuleTooSlow:  # it arrived on the way out
        alarm.end()
        judged = None
    if judged is not None:
        return judged
    if collects:
        gc.enable()
    _log.warning("judging a record was broken off after %.0f s of CPU time", alarm.measure_cpu_seconds())
    return unjudged(options), {}


def broken_off(judgement: Judgement) -> bool:
    """There was no time for some rule: what it would have found is not known."""
    return any(rule.why in (WHY_SLOW, WHY_NO_TIME) for rule in judgement.not_run)


def _judge_or_none(record: Record, options: JudgeOptions | None) -> Judged | None:
    try:
        return judge(record, options), why_none(record)
    except RuleTooSlow:
        return None  # here, so that what it came through is taken down in this context


def _alarms() -> Iterator[tuple[float, type[RuleTooSlow]]]:
    """After how many seconds what is raised; the last two are meant for all that is left."""
    at = RULE_SECONDS
    while at < ALL_SECONDS:
        yield at, RuleTooSlow
        at += NEXT_SECONDS
    yield ALL_SECONDS, JudgingTooLong
    yield ALL_SECONDS + LAST_SECONDS, JudgingTooLong


def _clock_of(thread: int) -> Callable[[], float]:
    """Return a clock of a thread's CPU time, or the time of day where a system has no such clock (macOS)."""
    if not hasattr(time, "pthread_getcpuclockid"):
        return time.monotonic
    clock = time.pthread_getcpuclockid(thread)
    return lambda: time.clock_gettime(clock)


class _Alarm:
    """Raises in the thread that made it, by that thread's own clock, from `start` until `end`."""

    def __init__(self) -> None:
        self._judge = threading.get_ident()
        self._now = _clock_of(self._judge)
        self._began = self._now()
        self._raising = threading.Lock()
        self._over = threading.Event()

    def start(self) -> None:
        """Begin to look at the clock."""
        threading.Thread(target=self._watch, name="patience", daemon=True).start()

    def measure_cpu_seconds(self) -> float:
        """CPU seconds of the thread since this was made."""
        return self._now() - self._began

    def end(self) -> None:
        """Nothing is raised any more, also not what was raised and has not arrived; may be called again."""
        with self._raising:
            self._over.set()
            _RAISE(ctypes.c_ulong(self._judge), None)

    def _watch(self) -> None:
        for seconds, kind in _alarms():
            while self.measure_cpu_seconds() < seconds:
                if self._over.wait(LOOK_SECONDS):
                    return
            with self._raising:
                if self._over.is_set():
                    return
                _RAISE(ctypes.c_ulong(self._judge), ctypes.py_object(kind))
