"""Wake a worker after a run has been stored. The run table is the queue; this message only says "look"."""

from __future__ import annotations

import itertools
import logging
from typing import TYPE_CHECKING

from celery import Celery

from store.settings import EXECUTE_NEXT, QUEUES, WAKE_UP_SECONDS, celery_settings

if TYPE_CHECKING:
    from store.settings import StoreSettings

log = logging.getLogger("backprobe.service")


class Wakeups:
    """Publishes wake-ups by the task's name, so that this process never imports workers."""

    def __init__(self, settings: StoreSettings) -> None:
        self._celery = Celery("backprobe", set_as_current=False)
        self._celery.conf.update(celery_settings(settings))
        self._failures = itertools.count(1)
        self.failed = 0

    def publish(self, queue: str) -> None:
        """Say "look at this queue". Called after the commit; it never raises.

        A failure is counted and logged, never shown: the run is safe in the database and the reaper wakes someone.
        """
        try:
            self._celery.send_task(
                EXECUTE_NEXT,
                args=[queue],
                queue=QUEUES[queue],
                expires=WAKE_UP_SECONDS,
                ignore_result=True,
                retry=False,
            )
        except Exception as error:  # noqa: BLE001 - whatever a broker raises, the run is already stored
            self.failed = next(self._failures)
            log.warning("wake-up not published: %s (failure %d)", type(error).__name__, self.failed)
