"""The Celery application of a worker: one task, no results, no events. Celery carries wake-ups and nothing else."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from celery import Celery

from store.database.missing_module import describe_class
from store.database.settings import EXECUTE_NEXT, QUEUES, WAKE_UP_SECONDS, StoreSettings, celery_settings

_log: Final = logging.getLogger(__name__)


def make_app(settings: StoreSettings, work: Callable[[str], object] | None = None) -> Celery:
    """Make the Celery application. With `work`, its task calls that with the name of a queue of runs."""
    app = Celery("backprobe", set_as_current=False)
    app.conf.update(celery_settings(settings))
    if work is not None:

        @app.task(name=EXECUTE_NEXT)
        def execute_next(queue: str) -> None:
            try:
                work(queue)
            except Exception as error:  # noqa: BLE001 - the fence around a task; a traceback may hold a stranger's text
                _log.error("a wake-up failed: %s", describe_class(error))

    return app


def publisher(app: Celery) -> Callable[[str], None]:
    """Return a function that sends a wake-up for a queue of runs. It raises what the broker's client raises."""

    def publish(queue: str) -> None:
        app.send_task(EXECUTE_NEXT, args=[queue], queue=QUEUES[queue], expiration=WAKE_UP_SECONDS, retry=False)

    return publish
