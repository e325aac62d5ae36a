"""Whether the broker answers: asked by who publishes wake-ups, and by who looks after the service."""

from __future__ import annotations

import logging
import os
import threading
import time
from pathlib import Path
from typing import Any, Final

from kombu.connection import Connection

from store.database.settings import StoreSettings, celery_settings

ANSWER_SECONDS: Final = 2
"""How long a broker may take to be connected to."""

LOOK_SECONDS: Final = 5.0
"""Between two looks at it."""

_log: Final = logging.getLogger(__name__)


def away(settings: StoreSettings) -> str | None:
    """Why the broker does not answer, in one line that names it without its password; None: it answers."""
    asked = celery_settings(settings)
    options: dict[str, Any] = asked["broker_transport_options"]
    if settings.embedded:
        return _closed(Path(options["data_folder_out"]))
    options = options | {name: ANSWER_SECONDS for name in options if name.startswith("socket_")}
    with Connection(asked["broker_url"], connect_timeout=ANSWER_SECONDS, transport_options=options) as connection:
        try:
            connection.connect()
        except Exception as error:  # noqa: BLE001 - whichever way a broker is away, it is not there
            return f"the broker {connection.as_uri()} does not answer ({type(error).__name__})"
    return None


def _closed(folder: Path) -> str | None:
    place = next(one for one in (folder, *folder.parents) if one.exists())
    if place.is_dir() and os.access(place, os.W_OK | os.X_OK):
        return None
    return f"the broker's folder {folder} cannot be written"


class BrokerWatch:
    """Looks at the broker every few seconds, in a thread of its own, and says when it goes and when it is back."""

    def __init__(self, settings: StoreSettings) -> None:
        self._settings = settings
        self._looking = threading.Lock()
        self._looked_at: float | None = None
        self._away: str | None = None
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Look from now on, also when nobody asks."""
        self._thread = threading.Thread(target=self._run, name="broker", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join(ANSWER_SECONDS)

    def away(self) -> str | None:
        """Why it does not answer, by a look that is a few seconds old at most; None: it answers."""
        with self._looking:
            if self._looked_at is None or time.monotonic() - self._looked_at > LOOK_SECONDS:
                found = away(self._settings)
                if found is not None and found != self._away:
                    _log.warning("%s: runs are taken, and wait until it does", found)
                elif found is None and self._away is not None:
                    _log.warning("the broker answers again")
                self._away, self._looked_at = found, time.monotonic()
            return self._away

    def _run(self) -> None:
        while not self._closed.is_set():
            self.away()
            self._closed.wait(LOOK_SECONDS + 0.1)
