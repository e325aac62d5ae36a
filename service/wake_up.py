"""Wake a worker after a run has been stored. The run table is the queue; this message only says "look".

A separate thread publishes: an unavailable broker must not delay a request whose run is already stored.
"""

from __future__ import annotations

import logging
import queue
import threading
from typing import TYPE_CHECKING, Final

from celery import Celery

from store.database.missing_module import describe_class
from store.database.settings import EXECUTE_NEXT, QUEUES, WAKE_UP_SECONDS, celery_settings

if TYPE_CHECKING:
    from store.database.settings import StoreSettings

log = logging.getLogger("backprobe.service")

MOST_WAITING: Final = 100
"""Wake-ups that wait for a slow broker; more of them would say nothing new."""


class Wakeups:
    """Publishes wake-ups by the task's name, so that this process never imports workers.

    Attributes:
        published: How many were published since the start.
        failed: How many could not be. The reaper sends others within seconds.
    """

    def __init__(self, settings: StoreSettings) -> None:
        self._celery = Celery("backprobe", set_as_current=False)
        self._celery.conf.update(celery_settings(settings))
        self._waiting: queue.Queue[str | None] = queue.Queue(MOST_WAITING)
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self.published = self.failed = 0

    def publish(self, name: str) -> None:
        """Say "look at this queue", after the commit. It returns at once and never raises.

        A failure is counted and logged, never shown: the run is safe in the database and the reaper wakes someone.
        """
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="wakeups", daemon=True)
                self._thread.start()
        try:
            self._waiting.put_nowait(name)
        except queue.Full:
            self.failed += 1

    def close(self) -> None:
        """Publish what waits, then stop; a broker that is away is not waited for."""
        thread = self._thread
        if thread is not None:
            try:
                self._waiting.put_nowait(None)
            except queue.Full:
                return
            thread.join(2)
        self._celery.close()

    def _run(self) -> None:
        while (name := self._waiting.get()) is not None:
            try:
                self._celery.send_task(
                    EXECUTE_NEXT,
                    args=[name],
                    queue=QUEUES[name],
                    expiration=WAKE_UP_SECONDS,
                    ignore_result=True,
                    retry=False,
                )
            except Exception as error:  # noqa: BLE001 - whatever a broker raises, the run is already stored
                self.failed += 1
                log.warning("wake-up not published: %s (failure %d)", describe_class(error), self.failed)
            else:
                self.published += 1
