"""Waiting for the end of a run: one thread per process listens, any number of requests wait."""

from __future__ import annotations

from types import TracebackType

from store.run import RunRow
from store.session import Database


class Hub:
    """Tells waiters that a run ended. `with Hub(database) as hub`, or `start()` and `close()`; one per process."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def wait(self, public_id: str, seconds: float, *, tenant_id: int = 1) -> RunRow | None:
        """The run as soon as it has ended; None: it had not after so many seconds, or there is no such run.

        Called from any thread. A run that has ended already returns at once.
        """
        raise NotImplementedError

    def start(self) -> None:
        """Begin to listen; a second call does nothing. `wait` starts it by itself."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop listening; every waiter returns with what it last saw."""
        raise NotImplementedError

    def __enter__(self) -> Hub:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
