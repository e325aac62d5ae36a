"""Whether the broker answers: asked by who publishes wake-ups, and by who looks after the service."""

from __future__ import annotations

import logging
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from kombu.connection import Connection
from kombu.utils import url as kombu_url

from store.database.missing_module import describe_missing, missing_module
from store.database.settings import StoreSettings, celery_settings

ANSWER_SECONDS: Final = 2
"""How long a broker may take to be connected to."""

LOOK_SECONDS: Final = 5.0
"""Between two looks at it."""

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFailure:
    """Why the broker cannot be used.

    Attributes:
        text: One line that names the broker without its password.
        missing_module: The Python module that its transport needs and that is not installed; None: none is missing.
    """

    text: str
    missing_module: str | None = None


def describe_failure(url: str, error: BaseException) -> BrokerFailure:
    """Describe an error that a connection to the broker at `url` has raised."""
    shown: Any = cast("Any", kombu_url).maybe_sanitize_url(url)
    broker = f"the broker {shown}"
    module = missing_module(error)
    if module is not None:
        return BrokerFailure(text=f"{broker} cannot be used: {describe_missing(module)}", missing_module=module)
    if isinstance(error, KeyError):  # kombu knows no transport of that name
        return BrokerFailure(text=f"{broker} cannot be used: BACKPROBE_BROKER_URL names no kind of broker")
    return BrokerFailure(text=f"{broker} does not answer ({type(error).__name__})")


def find_failure(settings: StoreSettings) -> BrokerFailure | None:
    """Connect to the broker once; return why that failed, None if it answers."""
    asked = celery_settings(settings)
    options: dict[str, Any] = asked["broker_transport_options"]
    if settings.embedded:
        text = _find_closed_folder(Path(options["data_folder_out"]))
        return None if text is None else BrokerFailure(text=text)
    options = options | {name: ANSWER_SECONDS for name in options if name.startswith("socket_")}
    url: str = asked["broker_url"]
    try:
        with Connection(url, connect_timeout=ANSWER_SECONDS, transport_options=options) as connection:
            connection.connect()
    except Exception as error:  # noqa: BLE001 - every transport raises different errors
        return describe_failure(url, error)
    return None


def _find_closed_folder(folder: Path) -> str | None:
    place = next(path for path in (folder, *folder.parents) if path.exists())
    if place.is_dir() and os.access(place, os.W_OK | os.X_OK):
        return None
    return f"the broker's folder {folder} cannot be written"


class BrokerWatch:
    """Probes the broker every few seconds in a separate thread; logs when it becomes unreachable and reachable."""

    def __init__(self, settings: StoreSettings) -> None:
        self._settings = settings
        self._looking = threading.Lock()
        self._looked_at: float | None = None
        self._failure: BrokerFailure | None = None
        self._find_closed_folder = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Look from now on, also when nobody asks."""
        self._thread = threading.Thread(target=self._run, name="broker", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._find_closed_folder.set()
        if self._thread is not None:
            self._thread.join(ANSWER_SECONDS)

    def find_failure(self) -> BrokerFailure | None:
        """Return why the broker cannot be used, as seen in the last few seconds; None: it answers."""
        with self._looking:
            if self._looked_at is None or time.monotonic() - self._looked_at > LOOK_SECONDS:
                found = find_failure(self._settings)
                if found is not None and found != self._failure:
                    _log.warning("%s; runs are accepted and wait until the broker can be used", found.text)
                elif found is None and self._failure is not None:
                    _log.warning("the broker answers again")
                self._failure, self._looked_at = found, time.monotonic()
            return self._failure

    def _run(self) -> None:
        while not self._find_closed_folder.is_set():
            self.find_failure()
            self._find_closed_folder.wait(LOOK_SECONDS + 0.1)
