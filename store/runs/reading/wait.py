"""Waiting for the end of a run: one thread per process listens, any number of requests wait.

PostgreSQL tells (LISTEN: commit to noticed 0.03 ms); SQLite is asked for `PRAGMA data_version` every 5 ms, and only
while somebody waits (2.6 us a look). Either may miss something, so waiters look for themselves every second too.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Generator
from types import TracebackType
from typing import Any, Final, Self

from sqlalchemy.exc import SQLAlchemyError

from store.database.session import Database
from store.runs.model import ENDED
from store.runs.reading.run_rows import status_of
from store.runs.transitions import CHANNEL

LOOK_SECONDS: Final = 0.005
"""Between two looks at SQLite's data_version while somebody waits."""

SELF_SECONDS: Final = 1.0
"""A waiter looks for itself so often, in case the news was lost (a pooler that swallows LISTEN)."""

_LISTEN_SECONDS: Final = 0.5
"""How long the PostgreSQL thread blocks before it looks whether it is to stop."""


class Hub:
    """Tells waiters that a run changed. `with Hub(database) as hub`, or `start()` and `close()`; one per process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._changed = threading.Condition()
        self._news = 0
        self._waiting = 0
        self._hearing: list[Callable[[], None]] = []
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def wait(self, public_id: str, seconds: float, *, tenant_id: int = 1) -> bool:
        """Wait until the run has ended; False: it had not after so many seconds, or there is no such run.

        Called from any thread. A run that has ended already returns at once.
        """
        status: str | None = None

        def has_ended() -> bool:
            nonlocal status
            with self._database.read() as reading:
                status = status_of(reading, public_id, tenant_id=tenant_id)
            return status is None or status in ENDED

        return self.wait_until(has_ended, seconds) and status is not None

    def wait_until(self, over: Callable[[], bool], seconds: float) -> bool:
        """Wait until something is over that tells when it changes (`store.runs.transitions.tell`); False: not by then.

        Args:
            over: Looks. Called at once, after each piece of news, and once a second.
            seconds: The longest wait.
        """
        self.start()
        deadline = time.monotonic() + seconds
        with self._changed:
            self._waiting += 1
            self._changed.notify_all()
        try:
            return self._wait_until(over, deadline)
        finally:
            with self._changed:
                self._waiting -= 1

    def _wait_until(self, over: Callable[[], bool], deadline: float) -> bool:
        while True:
            seen = self._news  # before the look, so that news in between is not slept through
            if over():
                return True
            left = deadline - time.monotonic()
            if left <= 0 or self._stopping.is_set():
                return False
            with self._changed:
                self._changed.wait_for(lambda: self._news != seen or self._stopping.is_set(), min(left, SELF_SECONDS))  # noqa: B023 - called here only

    def news(self, seen: int | None, seconds: float) -> int:
        """Wait until some run has changed; what to pass as `seen` the next time.

        Args:
            seen: What the call before answered; None: the first call, which returns at once.
            seconds: The longest wait. News that got lost shows after at most a second, by returning.
        """
        self.start()
        with self._changed:
            if seen is None:
                return self._news
            self._waiting += 1
            self._changed.notify_all()
            try:
                longest = min(seconds, SELF_SECONDS)
                self._changed.wait_for(lambda: self._news != seen or self._stopping.is_set(), longest)
                return self._news
            finally:
                self._waiting -= 1

    @contextlib.contextmanager
    def call_on_change(self, hear: Callable[[], None]) -> Generator[None]:
        """Call `hear`, which may not wait, at each piece of news and when this is closed, till the context is left."""
        self.start()
        with self._changed:
            self._hearing.append(hear)
            self._waiting += 1
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._hearing.remove(hear)
                self._waiting -= 1

    @property
    def stopping(self) -> bool:
        """It was closed: whoever waits is to go."""
        return self._stopping.is_set()

    def start(self) -> None:
        """Begin to listen; a second call does nothing. `wait` starts it by itself."""
        with self._changed:
            if self._thread is not None or self._stopping.is_set():
                return
            target = self._watch if self._database.sqlite else self._listen
            self._thread = threading.Thread(target=self._forever, args=(target,), name="backprobe-hub", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop listening; every waiter returns None."""
        self._stopping.set()
        self._tell()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _forever(self, listen: Callable[[], None]) -> None:
        """Listen again after each break: a database that restarts must not leave every later request waiting."""
        while not self._stopping.is_set():
            with contextlib.suppress(OSError, SQLAlchemyError, *_driver_errors(self._database)):
                listen()
            self._tell()
            self._stopping.wait(0.2)

    def _tell(self) -> None:
        with self._changed:
            self._news += 1
            self._changed.notify_all()
            for hear in self._hearing:
                hear()

    def _listen(self) -> None:
        with self._database.listen() as connection:
            connection.execute(f"LISTEN {CHANNEL}")
            self._tell()  # what was committed before LISTEN took hold told nobody
            while not self._stopping.is_set():
                for _ in connection.notifies(timeout=_LISTEN_SECONDS):
                    self._tell()
                    if self._stopping.is_set():
                        return

    def _watch(self) -> None:
        with contextlib.closing(self._database.watch()) as connection:
            version: int | None = None
            while not self._stopping.is_set():
                with self._changed:
                    self._changed.wait_for(lambda: self._waiting > 0 or self._stopping.is_set())
                now: int = connection.execute("PRAGMA data_version").fetchone()[0]
                if now != version:
                    version = now
                    self._tell()
                self._stopping.wait(LOOK_SECONDS)


def _driver_errors(database: Database) -> tuple[type[Exception], ...]:
    driver: Any = database.engine.dialect.loaded_dbapi
    return (driver.Error,)
